#!/usr/bin/env python3
"""Writes results.json out of openrpc.json, the file that `make build` makes in execution-apis:

    generate.py openrpc.json > results.json
"""

import json
import sys


def without_words(schema, is_of_members=False):
    """A schema without its titles and descriptions."""
    if isinstance(schema, list):
        return [without_words(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    words = () if is_of_members else ("title", "description")
    return {
        name: without_words(of, name == "properties" and not is_of_members)
        for name, of in schema.items()
        if name not in words
    }


with open(sys.argv[1], encoding="utf-8") as document:
    methods = json.load(document)["methods"]
lines = []
for method in sorted(methods, key=lambda method: method["name"]):
    schema = without_words(method["result"]["schema"])
    text = json.dumps(schema, sort_keys=True, separators=(",", ":"))
    lines.append(f"{json.dumps(method['name'])}:{text}")
print("{\n" + ",\n".join(lines) + "\n}")
