# For a shell with the functions of docs/recipes.md. Below each command is what it prints.
at_once -m 9 --http1.1 -H 'Connection: Upgrade' -H 'Upgrade: WebSocket' 'https://example.com/?[1-6]'
# 429 101 101 101 101 101
