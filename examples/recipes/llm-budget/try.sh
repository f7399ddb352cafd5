# For a shell with the functions of docs/recipes.md. Below each command is what it prints.
try https://llm.example.com/v1/chat/completions -d '{}'
# 401
try -H 'X-Api-Key: made-up' https://llm.example.com/v1/chat/completions -d '{}'
# 403
