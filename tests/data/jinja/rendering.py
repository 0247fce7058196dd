"""Renders templates as transformers does, with a fixed time."""
import datetime
import re

import transformers.utils.chat_template_utils as chat

NOW = datetime.datetime(2025, 7, 26, 13, 5, 9)


class FixedTime(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return NOW


chat.datetime = FixedTime

# What differs by address, by Python's internals or by whole numbers beyond 64 bits is no case.
NOT_COMPARABLE = re.compile(r" object at 0x|<built-in |<bound method|<function |<Macro |dict_items\(|dict_keys\(|dict_values\(|"
                            r"range\(|<Namespace|<LoopContext|<generator|\d{19}|<class ")


def render(template, context):
    """{"want": text}, {"error": message}, or None if this is no case."""
    try:
        out = chat._compile_jinja_template(template).render(**context)
        out.encode("utf-8")
    except RecursionError:
        return None
    except OverflowError:
        return None
    except UnicodeEncodeError:
        return None
    except Exception as e:  # all of them are errors of the template
        if NOT_COMPARABLE.search(str(e)):
            return None
        return {"error": f"{type(e).__name__}: {e}"}
    if NOT_COMPARABLE.search(out) or len(out) > 2000:
        return None
    return {"want": out}
