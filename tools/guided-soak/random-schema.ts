import type { Random } from '../soak/random.js';

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

const NAMES = ['a', 'ab', 'b', 'name', 'naïve', 'a"b', 'tab\t', '日本', '😀', '__proto__x', 'id', 'x y'];
const PATTERNS = [
  '^[a-c]{2,5}$',
  'x',
  '^\\d+$',
  '^(foo|bar)?baz',
  '[^a-z]$',
  '^[\\w.]+@[\\w]+$',
  '\\p{Lu}',
  '^"\\\\$',
];
/** Patterns that texts of most formats fulfil. */
const PATTERNS_IN_FORMATS = ['[0-9]', '^[^x]', '[^a-c]$', '^.{3,}$'];
const FORMATS = ['date', 'time', 'date-time', 'uuid', 'ipv4', 'ipv6', 'email', 'hostname', 'uri', 'duration'];
const TEXTS = ['', 'red', 'a"b\\c', 'line\nbreak', 'ü', '😀', '\u2028', 'null', '0'];

/** A schema of what is supported, of every kind in turn. References go to #/$defs/tree, which may refer to itself. */
export function randomSchema(random: Random): Json {
  const schema = valueSchema(random, 3) as { [key: string]: Json };
  return {
    ...schema,
    $defs: {
      tree: {
        type: 'object',
        properties: {
          value: valueSchema(random, 0),
          children: { type: 'array', items: { $ref: '#/$defs/tree' }, maxItems: 2 },
        },
        required: ['value'],
        additionalProperties: false,
      },
      leaf: { type: ['integer', 'null'] },
    },
  };
}

function valueSchema(random: Random, depth: number): Json {
  const kinds: ((random: Random, depth: number) => Json)[] = [
    text,
    text,
    integer,
    number,
    constant,
    simple,
    reference,
  ];
  if (depth > 0) kinds.push(object, object, object, array, tuple, choice, combined);
  return pick(random, kinds)(random, depth);
}

function text(random: Random): Json {
  const schema: { [key: string]: Json } = { type: 'string' };
  const keyword = random.pick(['pattern', 'format', 'lengths', 'several', 'none']);
  const isOneOf = (name: string, chance: number) =>
    keyword === name || (keyword === 'several' && random.chance(chance));
  if (isOneOf('format', 0.4)) schema.format = pick(random, FORMATS);
  const patterns = schema.format === undefined ? PATTERNS : PATTERNS_IN_FORMATS;
  if (isOneOf('pattern', 0.8)) schema.pattern = pick(random, patterns);
  if (isOneOf('lengths', 0.7)) {
    schema.minLength = random.integer(0, 4);
    schema.maxLength = schema.minLength + random.integer(0, keyword === 'several' ? 36 : 6);
  }
  if (keyword === 'several' && random.chance(0.3)) schema.allOf = [{ pattern: pick(random, patterns) }];
  return schema;
}

function integer(random: Random): Json {
  const schema: { [key: string]: Json } = { type: 'integer' };
  const low = random.integer(-1200, 1200);
  if (random.chance(0.5)) schema[random.chance(0.5) ? 'minimum' : 'exclusiveMinimum'] = low;
  if (random.chance(0.5)) {
    schema[random.chance(0.5) ? 'maximum' : 'exclusiveMaximum'] = low + random.integer(20, 4000);
  }
  if (random.chance(0.3)) schema.multipleOf = random.integer(1, 9);
  return schema;
}

function number(random: Random): Json {
  if (random.chance(0.2))
    return { type: 'number', minimum: 0, multipleOf: pick(random, [0.01, 0.25, 0.5, 5]) };
  const schema: { [key: string]: Json } = { type: 'number' };
  const low = random.integer(-300, 300) / pick(random, [1, 4, 10, 1000]);
  if (random.chance(0.5)) schema[random.chance(0.5) ? 'minimum' : 'exclusiveMinimum'] = low;
  if (random.chance(0.5)) {
    schema[random.chance(0.5) ? 'maximum' : 'exclusiveMaximum'] =
      Math.round(1000 * (low + random.integer(1, 500) / pick(random, [1, 100]))) / 1000;
  }
  return schema;
}

function constant(random: Random): Json {
  const values: Json[] = [
    pick(random, TEXTS),
    random.integer(-5, 5),
    1.5,
    1e21,
    true,
    null,
    [1, 'a'],
    { k: 'v' },
  ];
  return random.chance(0.5) ? { const: pick(random, values) } : { enum: values.slice(random.integer(0, 6)) };
}

function simple(random: Random): Json {
  return { type: pick(random, ['boolean', 'null', 'integer', 'number']) };
}

function reference(random: Random): Json {
  return { $ref: pick(random, ['#/$defs/tree', '#/$defs/leaf']) };
}

function object(random: Random, depth: number): Json {
  const properties: { [name: string]: Json } = {};
  const names = NAMES.filter(() => random.chance(0.3));
  for (const name of names) properties[name] = valueSchema(random, depth - 1);
  const schema: { [key: string]: Json } = {
    type: 'object',
    properties,
    required: names.filter(() => random.chance(0.6)),
  };
  const additional = random.integer(0, 3);
  if (additional === 0) schema.additionalProperties = false;
  if (additional === 1) schema.additionalProperties = valueSchema(random, 0);
  if (additional === 2) schema.additionalProperties = true;
  if (additional > 0 && random.chance(0.2)) {
    schema.propertyNames = pick(random, [{ type: 'string' }, { minLength: 1 }, { maxLength: 9 }]);
  }
  return schema;
}

function array(random: Random, depth: number): Json {
  const minItems = random.integer(0, 3);
  const schema: { [key: string]: Json } = { type: 'array', items: valueSchema(random, depth - 1), minItems };
  if (random.chance(0.7)) schema.maxItems = minItems + random.integer(0, 3);
  return schema;
}

function tuple(random: Random, depth: number): Json {
  const prefixItems = [valueSchema(random, depth - 1), valueSchema(random, 0)];
  const items: Json = random.chance(0.5) ? false : valueSchema(random, 0);
  return { type: 'array', prefixItems, items, minItems: random.integer(0, 2) };
}

function choice(random: Random, depth: number): Json {
  if (random.chance(0.5)) return { anyOf: [valueSchema(random, depth - 1), valueSchema(random, 0)] };
  return {
    oneOf: ['cat', 'dog'].map((kind) => ({
      type: 'object',
      properties: { kind: { const: kind }, of: valueSchema(random, depth - 1) },
      required: ['kind'],
    })),
  };
}

function combined(random: Random, depth: number): Json {
  const part = (name: string): Json => ({
    type: 'object',
    properties: { [name]: valueSchema(random, depth - 1) },
    required: [name],
  });
  return random.chance(0.5)
    ? { allOf: [part('left'), part('right')] }
    : { ...(part('base') as object), anyOf: [part('one'), part('two')] };
}

function pick<T>(random: Random, items: readonly T[]): T {
  return items[random.integer(0, items.length - 1)]!;
}
