# For a shell with the functions of docs/recipes.md. Below each command is what it prints.
try https://example.com/login -d '{"username":"Alice","password":"x"}'
# 400
try 'https://example.com/login?[1-5]' -d '{"username":"alice","password":"x"}'
# 401 401 401 401 429
