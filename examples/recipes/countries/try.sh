# For a shell with the functions of docs/recipes.md. Below each command is what it prints.
try -H 'CF-IPCountry: NO' 'https://example.com/signup?[1-6]'
# 200 200 200 200 200 429
try -H 'CF-IPCountry: SE' -H 'X-Client-ASN: 64500' https://example.com/signup
# 429
