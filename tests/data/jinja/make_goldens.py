#!/usr/bin/env python3
"""Renders this folder's templates with transformers and Jinja2 and writes what they must become: chat.json, bodies.json,
features.json, random.json. Offline: needs `pip install transformers jinja2`, no model. Usage: make_goldens.py"""
import json
import pathlib
import warnings

import conversations as given
import features
import random_templates
import rendering
import transformers.utils.chat_template_utils as chat

HERE = pathlib.Path(__file__).parent
RANDOM_CASES = 400
RANDOM_ERRORS = 60


def write(name, content):
    (HERE / name).write_text(json.dumps(content, ensure_ascii=False, indent=0, separators=(",", ":")) + "\n")


def chat_case(source, messages, tools, more, prompt):
    try:
        messages = chat._normalize_chat_messages(messages)
        out, _ = chat.render_jinja_template(conversations=[messages], tools=tools, chat_template=source,
                                            add_generation_prompt=prompt, **{**given.SPECIAL_TOKENS, **more})
        return {"want": out[0]}
    except Exception as e:
        return {"error": str(e)}


def chat_goldens():
    cases = []
    for path in sorted((HERE / "templates").glob("*.jinja")):
        source = path.read_text()
        for at, messages in enumerate(given.CONVERSATIONS):
            for tools_at, tools in enumerate(given.TOOLS):
                for more_at, more in enumerate(given.MORE):
                    # All variables with one set of tools, all tools with one set of variables.
                    if tools_at not in (0, 2) and more_at != 0 or not any(k in source for k in more) and more:
                        continue
                    if tools is not None and "tools" not in source:
                        continue
                    for prompt in (False, True) if tools_at == 0 and more_at < 2 else (True,):
                        cases.append({"template": path.name, "messages": at, "tools": tools_at, "more": more_at,
                                      "add_generation_prompt": prompt, **chat_case(source, messages, tools, more, prompt)})
    return {"conversations": given.CONVERSATIONS, "tools": given.TOOLS, "more": given.MORE,
            "special_tokens": given.SPECIAL_TOKENS, "cases": cases}


def as_templates_see_it(message):
    message = dict(message)
    if isinstance(message["content"], list):
        message["content"] = "".join(part["text"] for part in message["content"])
    calls = message.pop("tool_calls", None)
    if calls:
        message["tool_calls"] = [{**c, "function": {**c["function"], "arguments": json.loads(c["function"]["arguments"])}}
                                 for c in calls]
    return message


def body_goldens():
    """Bodies of chat calls and the prompts they become."""
    cases = []
    for path in sorted((HERE / "templates").glob("*.jinja")):
        source = path.read_text()
        for at, body in enumerate(given.BODIES):
            tools = body.get("tools") if body.get("tool_choice") != "none" else None
            if "<tool_call>" in source or "ipython" in source:
                want = chat_case(source, [as_templates_see_it(m) for m in body["messages"]], tools,
                                 body.get("chat_template_kwargs", {}), True)
                cases.append({"template": path.name, "body": at, **want})
    return {"bodies": given.BODIES, "special_tokens": given.SPECIAL_TOKENS, "cases": cases}


def feature_goldens():
    rendered = [(t, c, rendering.render(t, c)) for t, c in features.CASES]
    return [{"template": t, "context": c, **want} for t, c, want in rendered if want]


def random_goldens():
    cases, errors, seed = [], 0, 0
    while len(cases) < RANDOM_CASES:
        case = random_templates.case(seed)
        seed += 1
        want = rendering.render(case["template"], case["context"])
        if want is None or len(case["template"]) > 900:
            continue
        if "error" in want:
            errors += 1
            if errors > RANDOM_ERRORS:
                continue
        used = {k: v for k, v in case["context"].items() if k in case["template"]}
        cases.append({"template": case["template"], "context": used, **want})
    return cases


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    write("chat.json", chat_goldens())
    write("bodies.json", body_goldens())
    write("features.json", feature_goldens())
    write("random.json", random_goldens())
