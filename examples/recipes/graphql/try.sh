# For a shell with the functions of docs/recipes.md. Below each command is what it prints.
try -d '{"query":"{me}"}' 'https://api.example.com/graphql?[1-150]' | tail -c 8
# 429 429
