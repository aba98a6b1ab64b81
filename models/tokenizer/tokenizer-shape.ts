import { isObject } from '../../base/option-values.js';

/**
 * Checks of values in tokenizer.json. The library believes all of them, and a wrong one would show as an error of
 * JavaScript, far from its place.
 */

type Check = (value: unknown) => boolean;

interface Kind {
  name: string;
  fits: Check;
}

/** Refuses a value. `where` is its place in tokenizer.json, such as model.merges[3]. */
export type Refuse = (where: string, expected: string, found: unknown) => never;

/** Greatest token id: lists are made of that length. */
const MAX_ID = 2 ** 24;
const MAX_CONTENT = 1024;
const MAX_DEPTH = 16;

const isText: Check = (value) => typeof value === 'string';
const isId: Check = (value) =>
  Number.isInteger(value) && (value as number) >= 0 && (value as number) < MAX_ID;
const isPair = (value: unknown, first: Check, second: Check): boolean =>
  Array.isArray(value) && value.length === 2 && first(value[0]) && second(value[1]);

const text: Kind = { name: 'a string', fits: isText };
/** Names of types, which appear in messages. */
const isName: Check = (value) => isText(value) && (value as string).length <= 64;
const typeName: Kind = { name: 'the name of a type', fits: isName };
const flag: Kind = { name: 'true or false', fits: (value) => typeof value === 'boolean' };
const count: Kind = { name: 'a whole number of 0 or more', fits: isId };
const size: Kind = { name: 'a whole number of 1 or more', fits: (value) => isId(value) && value !== 0 };
const tokenAndId: Kind = { name: 'a token and its id', fits: (value) => isPair(value, isText, isId) };
const pattern: Kind = {
  name: 'an object with a String or a Regex',
  fits: (value) => isObject(value) && (isText(value.String) || isText(value.Regex)),
};
const pieces: Kind = {
  name: 'a list of {SpecialToken: {id, type_id}} and {Sequence: {id, type_id}}',
  fits: (value) => Array.isArray(value) && value.every(isPiece),
};
const templateTokens: Kind = {
  name: 'an object of {ids}',
  fits: (value) => isObject(value) && Object.values(value).every((one) => isObject(one) && areIds(one.ids)),
};

function isPiece(value: unknown): boolean {
  if (!isObject(value)) return false;
  const named = value.SpecialToken ?? value.Sequence;
  return isObject(named) && isText(named.id) && (named.type_id === undefined || isId(named.type_id));
}

function areIds(value: unknown): boolean {
  return Array.isArray(value) && value.every(isId);
}

const MODEL_FIELDS: Readonly<Record<string, Kind>> = {
  ...{ type: typeName, unk_token: text, unk_id: count, max_input_chars_per_word: size },
  ...{ continuing_subword_prefix: text, continuing_subword_suffix: text, end_of_word_suffix: text },
  ...{ fuse_unk: flag, byte_fallback: flag, ignore_merges: flag },
};

/** Fields of normalizers, pre-tokenizers, post-processors and decoders: a name means the same in all of them. */
const COMPONENT_FIELDS: Readonly<Record<string, Kind>> = {
  ...{ content: text, prepend: text, replacement: text, str_rep: text, prepend_scheme: text, behavior: text },
  ...{ prefix: text, invert: flag, add_prefix_space: flag, use_regex: flag, trim_offsets: flag },
  ...{ individual_digits: flag, lowercase: flag, clean_text: flag, handle_chinese_chars: flag },
  ...{ strip_accents: flag, strip_left: flag, strip_right: flag, cleanup: flag, start: count, stop: count },
  ...{ length: size, pattern, cls: tokenAndId, sep: tokenAndId, single: pieces, pair: pieces },
  special_tokens: templateTokens,
};
const LISTS = ['normalizers', 'pretokenizers', 'processors', 'decoders'] as const;
const REQUIRED: Readonly<Record<string, readonly string[]>> = {
  ...{ Split: ['pattern'], Replace: ['pattern'], Prepend: ['prepend'], FixedLength: ['length'] },
  ...{ TemplateProcessing: ['single'], BertProcessing: ['cls', 'sep'], RobertaProcessing: ['cls', 'sep'] },
};

const ADDED_FIELDS: Readonly<Record<string, Kind>> = {
  id: count,
  content: {
    name: `a string of at most ${MAX_CONTENT} characters`,
    fits: (value) => isText(value) && (value as string).length <= MAX_CONTENT,
  },
  ...{ special: flag, normalized: flag, single_word: flag, lstrip: flag, rstrip: flag },
};

/** Checks a tokenizer.json. @param refuse called with the first wrong value */
export function checkTokenizerShape(json: Record<string, unknown>, refuse: Refuse): void {
  checkAdded(json.added_tokens ?? [], refuse);
  for (const name of ['normalizer', 'pre_tokenizer', 'post_processor', 'decoder']) {
    if (json[name] !== undefined && json[name] !== null) checkComponent(json[name], name, refuse, 0);
  }
  if (!isObject(json.model)) refuse('model', 'an object', json.model);
  checkModel(json.model as Record<string, unknown>, refuse);
}

function checkAdded(added: unknown, refuse: Refuse): void {
  if (!Array.isArray(added)) refuse('added_tokens', 'a list of {id, content}', added);
  for (const [i, token] of (added as unknown[]).entries()) {
    if (!isObject(token)) refuse(`added_tokens[${i}]`, '{id, content}', token);
    checkFields(
      token as Record<string, unknown>,
      `added_tokens[${i}]`,
      ADDED_FIELDS,
      ['id', 'content'],
      refuse,
    );
  }
}

function checkComponent(part: unknown, where: string, refuse: Refuse, depth: number): void {
  if (!isObject(part) || !isName(part.type)) refuse(where, 'an object with a type', part);
  if (depth > MAX_DEPTH) refuse(where, `nested at most ${MAX_DEPTH} deep`, part);
  const component = part as Record<string, unknown>;
  const required = REQUIRED[String(component.type)] ?? [];
  checkFields(component, where, COMPONENT_FIELDS, required, refuse);
  for (const list of LISTS) {
    const inner = component[list] ?? [];
    if (!Array.isArray(inner)) refuse(`${where}.${list}`, 'a list of components', inner);
    for (const [i, one] of (inner as unknown[]).entries()) {
      checkComponent(one, `${where}.${list}[${i}]`, refuse, depth + 1);
    }
  }
}

function checkFields(
  values: Record<string, unknown>,
  where: string,
  fields: Readonly<Record<string, Kind>>,
  required: readonly string[],
  refuse: Refuse,
): void {
  // Some vocabularies have thousands of added tokens: for these a list of the fields each time would take longest.
  for (const name in fields) {
    const kind = fields[name]!;
    const value = values[name] ?? undefined;
    if (value === undefined ? required.includes(name) : !kind.fits(value)) {
      refuse(`${where}.${name}`, kind.name, values[name]);
    }
  }
}

function checkModel(model: Record<string, unknown>, refuse: Refuse): void {
  const isWordPiece = model.type === 'WordPiece';
  const required = isWordPiece ? ['unk_token', 'continuing_subword_prefix'] : [];
  checkFields(model, 'model', MODEL_FIELDS, required, refuse);
  const { vocab, merges, type } = model;
  if (Array.isArray(vocab)) {
    if (type === 'BPE' || isWordPiece) refuse('model.vocab', 'an object of texts and ids', vocab);
    checkScores(vocab, refuse);
    const { unk_id: unknown = null } = model;
    if (unknown === null || (unknown as number) >= vocab.length) {
      refuse('model.unk_id', `the place of a token, from 0 to ${vocab.length - 1}`, unknown);
    }
    return;
  }
  if (!isObject(vocab))
    refuse('model.vocab', 'an object of texts and ids, or a list of texts and scores', vocab);
  if (type === 'Unigram') refuse('model.vocab', 'a list of texts and scores', vocab);
  for (const [entry, id] of Object.entries(vocab as Record<string, unknown>)) {
    if (!isId(id)) refuse(`model.vocab[${JSON.stringify(entry.slice(0, 60))}]`, 'a token id', id);
  }
  if (merges !== undefined || type === 'BPE') checkMerges(merges, refuse);
}

function checkScores(vocab: readonly unknown[], refuse: Refuse): void {
  if (vocab.length === 0) refuse('model.vocab', 'a list of texts and scores, with one at least', vocab);
  for (let id = 0; id < vocab.length; id++) {
    if (!isPair(vocab[id], isText, Number.isFinite))
      refuse(`model.vocab[${id}]`, 'a text and its score', vocab[id]);
  }
}

function checkMerges(merges: unknown, refuse: Refuse): void {
  if (!Array.isArray(merges)) refuse('model.merges', 'a list of merges', merges);
  const list = merges as unknown[];
  // The library takes all entries for the kind of the first one.
  const arePairs = Array.isArray(list[0]);
  for (let rank = 0; rank < list.length; rank++) {
    const merge = list[rank];
    const fits = arePairs ? isPair(merge, isText, isText) : isText(merge) && (merge as string).includes(' ');
    if (!fits) {
      const expected = arePairs ? 'a list of two texts' : 'two texts with a space between them';
      refuse(`model.merges[${rank}]`, expected, merge);
    }
  }
}

const CONFIG_TOKENS = ['bos_token', 'eos_token', 'pad_token', 'unk_token'];

/** Checks the fields of tokenizer_config.json that are read. */
export function checkConfigShape(config: Record<string, unknown>, refuse: Refuse): void {
  for (const name of CONFIG_TOKENS) {
    const value = config[name] ?? null;
    const fits = value === null || isText(value) || (isObject(value) && isText(value.content));
    if (!fits) refuse(name, 'a string, or an object with content', value);
  }
  checkFields(config, '', { add_bos_token: flag, add_eos_token: flag }, [], (where, expected, found) =>
    refuse(where.slice(1), expected, found),
  );
}
