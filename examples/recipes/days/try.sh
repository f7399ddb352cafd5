# For a shell with the functions of docs/recipes.md. Below each command is what it prints.
try -H 'X-Api-Key: key-of-alice' 'https://api.example.com/?[1-21]' | tail -c 8
# 200 429
try -H 'X-Api-Key: made-up' https://api.example.com/
# 403
