# For a shell with the functions of docs/recipes.md. Below each command is what it prints.
try -X POST 'https://example.com/api/item/17/comment?[1-6]'
# 200 200 200 200 200 429
try -X PUT https://example.com/API/item/18/comment/
# 429
try https://example.com/api/item/17/comment
# 200
