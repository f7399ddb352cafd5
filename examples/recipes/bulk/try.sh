# For a shell with the functions of docs/recipes.md. Below each command is what it prints.
try 'https://upload.example.com/?[1-100]' | tail -c 8
# 200 200
try -m 2 https://upload.example.com/
# 000
