import {
  ANY_CHARACTER,
  alt,
  chars,
  complement,
  EMPTY,
  type Expr,
  type Grammar,
  GuideError,
  NOTHING,
  normalized,
  repeat,
  rule,
  seq,
  special,
  text,
} from '../grammar.js';
import { spend } from '../reading-work.js';
import { ebnfGrammar } from './ebnf.js';
import { jsonSchemaGrammar, type SchemaOptions } from './json-schema.js';
import { whiteSpaceOf } from './json-space.js';
import { JSON_SPACE } from './json-text.js';
import { regexExpr } from './regex.js';
import { isObject, type JsonValue, shown } from './schema-keywords.js';

const MAX_DEPTH = 50;
type Fields = { [field: string]: JsonValue };

interface Tag {
  /** Begin of the tag: a text, or a special token. */
  begin: string | { token: string };
  content: JsonValue;
  end: string;
  path: string;
}

/**
 * Reads a structural tag, a text in which tags have a form, in the notation of vLLM and XGrammar:
 *
 *   { "format": { "type": "triggered_tags", "triggers": ["<f="], "tags": [{ "type": "tag", "begin": "<f=a>",
 *     "content": { "type": "json_schema", "json_schema": {...} }, "end": "</f>" }] } }
 *
 * and in the older form { "structures": [{ "begin", "schema", "end" }], "triggers" }. Formats: const_string, any_text,
 * json_schema, regex, grammar, sequence, or, tag, triggered_tags, tags_with_separator, token. A token is a special token of
 * the vocabulary, { "type": "token", "token": "[TOOL_CALLS]" }, and may stand for the begin of a tag, which then needs no
 * trigger. A json_schema of "style": "keyword_arguments" is an object's written as a=1, b="x", one of "style": "gemma4" has
 * {a:<|"|>x<|"|>}, where "special_quotes" says that these quotes are a special token. Its "whitespace_pattern", a regular
 * expression, is the white space between the tokens of all JSON in the tag; with "strict": false what of the schema cannot be followed is left
 * out.
 * @throws GuideError naming the place.
 */
export function structuralTagGrammar(tag: JsonValue): Grammar {
  const reader = new TagReader();
  const root = reader.read(tag);
  return { rules: new Map([...reader.rules, ['root', root]]), root: 'root', leftOut: [...reader.leftOut] };
}

class TagReader {
  readonly rules = new Map<string, Expr>();
  /** What of its schemas is not followed. */
  readonly leftOut = new Set<string>();
  #numRules = 0;
  #depth = 0;
  /** Pattern of the white space in JSON; null: the default. */
  #spacePattern: string | null = null;

  read(tag: JsonValue): Expr {
    const fields = fieldsOf(tag, 'structural_tag');
    if (fields.structures !== undefined) return this.#older(fields);
    const root = this.#format(fields.format ?? null, 'format', null);
    if (this.#spacePattern !== null) this.rules.set(JSON_SPACE, whiteSpaceOf(this.#spacePattern));
    return root;
  }

  #older({ structures, triggers }: Fields): Expr {
    const tags = listOf(structures, 'structures').map((item, i) => {
      const path = `structures[${i}]`;
      const { begin, schema, end } = fieldsOf(item, path);
      const content: JsonValue = { type: 'json_schema', json_schema: schema ?? true };
      return { begin: textOf(begin, `${path}.begin`), content, end: textOf(end, `${path}.end`), path };
    });
    return this.#triggered(tags, textsOf(triggers, 'triggers'), { atLeastOne: false, stopAfterFirst: false });
  }

  /** `until`: the text that follows, which a text without a form must not contain. */
  #format(given: JsonValue, path: string, until: string | null): Expr {
    if (++this.#depth > MAX_DEPTH) throw fault(path, `formats are nested deeper than ${MAX_DEPTH}`);
    const fields = fieldsOf(given, path);
    const expr = this.#ofType(fields, path, until);
    this.#depth--;
    return expr;
  }

  #ofType(fields: Fields, path: string, until: string | null): Expr {
    switch (fields.type) {
      case 'const_string':
        return text(textOf(fields.value, `${path}.value`));
      case 'token':
        return special(textOf(fields.token, `${path}.token`));
      case 'any_text':
        return until === null || until === '' ? repeat(ANY_CHARACTER, 0, null) : this.#textWithout(until);
      case 'json_schema':
        this.#takeSpace(fields.whitespace_pattern, `${path}.whitespace_pattern`);
        return this.#nested(
          jsonSchemaGrammar(fields.json_schema ?? true, {
            prefix: `tag-schema-${this.#numRules++}`,
            style: styleOf(fields.style, `${path}.style`),
            hasSpecialQuotes: fields.special_quotes === true,
            isStrict: fields.strict !== false,
          }),
          false,
        );
      case 'regex':
        return regexExpr(textOf(fields.pattern, `${path}.pattern`), { mode: 'full' });
      case 'grammar':
        return this.#nested(ebnfGrammar(textOf(fields.grammar, `${path}.grammar`)), true);
      case 'sequence': {
        const elements = listOf(fields.elements, `${path}.elements`);
        const last = elements.length - 1;
        return seq(
          ...elements.map((item, i) =>
            this.#format(item, `${path}.elements[${i}]`, i === last ? until : null),
          ),
        );
      }
      case 'or':
        return alt(
          ...listOf(fields.elements, `${path}.elements`).map((item, i) =>
            this.#format(item, `${path}.elements[${i}]`, until),
          ),
        );
      case 'tag':
        return this.#tag(tagOf(fields, path), '');
      case 'triggered_tags':
        return this.#triggered(
          tagsOf(fields.tags, path),
          isEmptyList(fields.triggers) ? [] : textsOf(fields.triggers, `${path}.triggers`),
          switches(fields),
        );
      case 'tags_with_separator':
        return this.#separated(fields, path);
      default:
        throw fault(path, `the format's type is ${shown(fields.type ?? null)}, which is not known`);
    }
  }

  #takeSpace(given: JsonValue | undefined, path: string): void {
    if (given === undefined || given === null) return;
    const pattern = textOf(given, path);
    if (this.#spacePattern !== null && this.#spacePattern !== pattern)
      throw fault(path, 'another schema of the tag has another pattern');
    this.#spacePattern = pattern;
  }

  /** The rest of the tag after `begun`, the first part of its begin. */
  #tag({ begin, content, end, path }: Tag, begun: string): Expr {
    const first = typeof begin === 'string' ? text(begin.slice(begun.length)) : special(begin.token);
    return seq(first, this.#format(content, `${path}.content`, end), text(end));
  }

  #separated(fields: Fields, path: string): Expr {
    const tags = alt(...tagsOf(fields.tags, path).map((tag) => this.#tag(tag, '')));
    const { atLeastOne, stopAfterFirst } = switches(fields);
    const separator = text(textOf(fields.separator, `${path}.separator`));
    const some = stopAfterFirst ? tags : seq(tags, repeat(seq(separator, tags), 0, null));
    return atLeastOne ? some : alt(EMPTY, some);
  }

  /** Any text in which each trigger, and each special token that begins a tag, starts a tag. */
  #triggered(
    tags: readonly Tag[],
    triggers: readonly string[],
    { atLeastOne, stopAfterFirst }: { atLeastOne: boolean; stopAfterFirst: boolean },
  ): Expr {
    const ways = triggers.map((trigger) => {
      const fitting = tags.filter((tag) => beginsWith(tag, trigger));
      if (fitting.length === 0) throw fault('triggers', `no tag begins with the trigger ${shown(trigger)}`);
      return alt(...fitting.map((tag) => this.#tag(tag, trigger)));
    });
    const byToken = tags.filter(({ begin }) => typeof begin !== 'string');
    const lost = tags.find(
      (tag) => typeof tag.begin === 'string' && !triggers.some((trigger) => beginsWith(tag, trigger)),
    );
    if (lost) throw fault(lost.path, `no trigger is the beginning of ${shown(lost.begin as string)}`);
    const after = this.#newRule();
    const behind = stopAfterFirst ? EMPTY : rule(after);
    const token = byToken.length === 0 ? null : seq(alt(...byToken.map((tag) => this.#tag(tag, ''))), behind);
    const textUntil = (mayEnd: boolean) =>
      this.#textUntil(triggers, (i) => seq(ways[i]!, behind), mayEnd, token);
    const loop = textUntil(true);
    this.rules.set(after, stopAfterFirst ? EMPTY : loop);
    return atLeastOne ? textUntil(false) : loop;
  }

  #textWithout(end: string): Expr {
    return this.#textUntil([end], () => NOTHING, true);
  }

  /**
   * Text in which any of the words must be followed by `behind`, and `token` may come anywhere; a rule for each beginning of
   * a word that the text may have reached (Aho and Corasick's automaton).
   */
  #textUntil(
    words: readonly string[],
    behind: (word: number) => Expr,
    mayEnd: boolean,
    token: Expr | null = null,
  ): Expr {
    const prefix = this.#newRule();
    const beginnings = new Set(['']);
    for (const word of words) {
      const characters = [...word];
      spend(characters.length ** 2);
      for (let i = 1; i < characters.length; i++) beginnings.add(characters.slice(0, i).join(''));
    }
    const goOn = follower(beginnings);
    const alphabet = [...new Set(words.flatMap((word) => [...word]))];
    const tokenRule = token === null ? null : this.#newRule();
    if (tokenRule !== null) this.rules.set(tokenRule, token!);
    const exits = words.map((_, i) => {
      const name = this.#newRule();
      this.rules.set(name, behind(i));
      return rule(name);
    });
    const others = complement(normalized(alphabet.map((character) => pointOf(character))));
    const names = new Map([...beginnings].map((beginning, i) => [beginning, `${prefix}-${i}`]));
    for (const [beginning, name] of names) {
      spend(alphabet.length * (words.length + beginning.length));
      const ways: Expr[] = mayEnd ? [EMPTY] : [];
      if (tokenRule !== null) ways.push(rule(tokenRule));
      ways.push(seq({ kind: 'chars', ranges: others }, rule(names.get('')!)));
      for (const character of alphabet) {
        const come = beginning + character;
        const word = words.findIndex((candidate) => candidate !== '' && come.endsWith(candidate));
        const next = word >= 0 ? exits[word]! : rule(names.get(goOn(beginning, character))!);
        ways.push(seq(chars(pointOf(character)), next));
      }
      this.rules.set(name, alt(...ways));
    }
    return rule(names.get('')!);
  }

  /** Takes over the rules of another grammar, renamed if they could clash with those of a third. */
  #nested(grammar: Grammar, renames: boolean): Expr {
    const prefix = `${this.#newRule()}-`;
    const renamed = (name: string) => (renames || name === grammar.root ? prefix + name : name);
    for (const [name, expr] of grammar.rules) this.rules.set(renamed(name), withNames(expr, renamed));
    for (const sentence of grammar.leftOut ?? []) this.leftOut.add(sentence);
    return rule(renamed(grammar.root));
  }

  #newRule(): string {
    return `tag-${this.#numRules++}`;
  }
}

function withNames(expr: Expr, renamed: (name: string) => string): Expr {
  spend(1);
  switch (expr.kind) {
    case 'rule':
      return rule(renamed(expr.name));
    case 'seq':
    case 'alt':
      return { kind: expr.kind, items: expr.items.map((item) => withNames(item, renamed)) };
    case 'repeat':
      return { ...expr, item: withNames(expr.item, renamed) };
    case 'graph':
      return {
        ...expr,
        edges: expr.edges.map((edge) => ({ ...edge, expr: withNames(edge.expr, renamed) })),
      };
    default:
      return expr;
  }
}

/**
 * Returns the function that finds the longest of the beginnings that a text ends with, given the one it ended with
 * before and one more character. As in Aho and Corasick's algorithm, it goes by the longest shorter beginning that each
 * beginning ends with.
 */
function follower(beginnings: ReadonlySet<string>): (beginning: string, character: string) => string {
  const ends = new Map<string, string>([['', '']]);
  const goOn = (beginning: string, character: string): string => {
    for (let end = beginning; ; end = ends.get(end)!) {
      if (beginnings.has(end + character)) return end + character;
      if (end === '') return '';
    }
  };
  // A set keeps its order of insertion: each beginning of a word comes after the shorter ones.
  for (const beginning of beginnings) {
    const characters = [...beginning];
    const last = characters.pop();
    if (last === undefined) continue;
    const before = characters.join('');
    ends.set(beginning, characters.length === 0 ? '' : goOn(ends.get(before)!, last));
  }
  return goOn;
}

function pointOf(character: string): [number, number] {
  return [character.codePointAt(0)!, character.codePointAt(0)!];
}

function tagsOf(value: JsonValue | undefined, path: string): Tag[] {
  return listOf(value, `${path}.tags`).map((tag, i) =>
    tagOf(fieldsOf(tag, `${path}.tags[${i}]`), `${path}.tags[${i}]`),
  );
}

function tagOf(fields: Fields, path: string): Tag {
  return {
    begin: beginOf(fields.begin, `${path}.begin`),
    content: fields.content ?? null,
    end: textOf(fields.end, `${path}.end`),
    path,
  };
}

function beginOf(value: JsonValue | undefined, path: string): Tag['begin'] {
  if (!isObject(value ?? null)) return textOf(value, path);
  return { token: textOf(fieldsOf(value!, path).token, `${path}.token`) };
}

function beginsWith({ begin }: Tag, trigger: string): boolean {
  spend(1);
  return typeof begin === 'string' && begin.startsWith(trigger);
}

function isEmptyList(value: JsonValue | undefined): boolean {
  return Array.isArray(value) && value.length === 0;
}

function styleOf(value: JsonValue | undefined, path: string): NonNullable<SchemaOptions['style']> {
  if (value === undefined || value === 'json') return 'json';
  if (value === 'keyword_arguments' || value === 'gemma4') return value;
  throw fault(path, `it is ${shown(value)}; json, keyword_arguments or gemma4 is expected`);
}

function switches(fields: Fields): { atLeastOne: boolean; stopAfterFirst: boolean } {
  return { atLeastOne: fields.at_least_one === true, stopAfterFirst: fields.stop_after_first === true };
}

function fieldsOf(value: JsonValue, path: string): Fields {
  if (isObject(value)) return value;
  throw fault(path, `it is ${shown(value)}; an object is expected`);
}

function listOf(value: JsonValue | undefined, path: string): JsonValue[] {
  if (Array.isArray(value) && value.length > 0) return value;
  throw fault(path, `it is ${shown(value ?? null)}; a list with at least one entry is expected`);
}

function textsOf(value: JsonValue | undefined, path: string): string[] {
  const texts = listOf(value, path).map((item, i) => textOf(item, `${path}[${i}]`));
  const empty = texts.indexOf('');
  if (empty >= 0) throw fault(`${path}[${empty}]`, 'it is empty; at least one character is expected');
  return texts;
}

function textOf(value: JsonValue | undefined, path: string): string {
  if (typeof value === 'string') return value;
  throw fault(path, `it is ${shown(value ?? null)}; a text is expected`);
}

function fault(path: string, what: string): GuideError {
  return new GuideError(`The structural tag is refused at ${path}: ${what}.`);
}
