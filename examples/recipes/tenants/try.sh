# For a shell with the functions of docs/recipes.md. Below each command is what it prints.
try 'https://acme.example.com/?[1-101]' | tail -c 8
# 200 429
try https://globex.example.com/
# 200
try https://made-up.example.com/
# 404
