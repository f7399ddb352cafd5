# For a shell with the functions of docs/recipes.md. Below each command is what it prints.
try 'https://one.example.com/?[1-6]' 'https://two.example.com/?[1-4]' https://two.example.com/ 2>/dev/null | tail -c 8
# 200 429
