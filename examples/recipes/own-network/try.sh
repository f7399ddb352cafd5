# For a shell with the functions of docs/recipes.md. Below each command is what it prints.
try 'https://example.com/?[1-11]' | tail -c 8
# 200 429
try -H 'X-Forwarded-For: 203.0.113.7' https://example.com/
# 429
