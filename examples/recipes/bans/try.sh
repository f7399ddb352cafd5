# For a shell with the functions of docs/recipes.md. Below each command is what it prints.
try 'https://example.com/?[1-151]' | tail -c 8
# 429 429
curl -sk --connect-to ::localhost: -o /dev/null -w '%header{retry-after}' https://example.com/
# 600
