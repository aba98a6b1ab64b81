"""
Renders templates with Jinja2 as transformers sets it up: the judge of models/jinja.

    python3 tools/reference/templates/render.py < JOBS > RESULTS

JOBS is {"conversations": [...], "templates": [...], "variables": {...}}: each template is rendered with each conversation's
variables, on top of the common ones. RESULTS has a list for each template: {"text"} or {"error", "message"} for each
conversation, or {"error", "message"} alone for a template that is none. The clock stands at 2026-11-28 12:05:07.
"""

import datetime
import json
import sys

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

NOW = datetime.datetime(2026, 11, 28, 12, 5, 7)


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_generation"), [], [], body).set_lineno(line)

    def _generation(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


class TemplateDict:
    def __call__(self, *args, **kwargs):
        return dict(*args, **kwargs)

    def fromkeys(self, *args, **kwargs):
        return dict.fromkeys(*args, **kwargs)


def environment():
    made = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    made.filters["tojson"] = tojson
    made.globals["raise_exception"] = raise_exception
    made.globals["strftime_now"] = lambda form: NOW.strftime(form)
    made.globals["dict"] = TemplateDict()
    return made


def failure(error):
    return {"error": type(error).__name__, "message": str(error)}


def rendered(template, variables):
    try:
        return {"text": template.render(**json.loads(json.dumps(variables)))}
    except Exception as error:
        return failure(error)


def results(made, source, conversations, common):
    try:
        template = made.from_string(source)
    except Exception as error:
        return failure(error)
    return [rendered(template, {**common, **own}) for own in conversations]


def main():
    jobs = json.load(sys.stdin)
    made = environment()
    found = [results(made, source, jobs["conversations"], jobs.get("variables", {})) for source in jobs["templates"]]
    json.dump(found, sys.stdout)


main()
