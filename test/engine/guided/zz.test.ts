import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { expect, it } from 'vitest';
import * as z from 'zod';
import { Random } from '../../../tools/soak/random.js';
import { matcherOf, matches } from './follow.js';
import { randomText } from './random-text.js';

const s: Record<string, any> = {
  email: z.email(),
  uuid: z.uuid(),
  uuid4: z.uuidv4(),
  guid: z.guid(),
  url: z.url(),
  hostname: z.hostname(),
  emoji: z.emoji(),
  nanoid: z.nanoid(),
  cuid: z.cuid(),
  cuid2: z.cuid2(),
  ulid: z.ulid(),
  xid: z.xid(),
  ksuid: z.ksuid(),
  ipv4: z.ipv4(),
  ipv6: z.ipv6(),
  mac: z.mac?.(),
  cidrv4: z.cidrv4(),
  cidrv6: z.cidrv6(),
  base64: z.base64(),
  base64url: z.base64url(),
  e164: z.e164(),
  jwt: z.jwt(),
  date: z.iso.date(),
  time: z.iso.time(),
  dt: z.iso.datetime(),
  dtl: z.iso.datetime({ local: true, offset: true }),
  dur: z.iso.duration(),
  sw: z.string().startsWith('https://').endsWith('.png').includes('x/y'),
  rx: z.string().regex(/^[A-Z]{2}\d+$/),
  two: z.string().regex(/a/).regex(/b/).max(5),
  lower: z.string().lowercase().min(2),
  rec: z.record(z.string(), z.number()),
  recenum: z.record(z.enum(['a', 'b']), z.number()),
  prec: z.partialRecord(z.enum(['a', 'b']), z.number()),
  recre: z.record(z.string().regex(/^x/), z.number()),
  loose: z.looseObject({ a: z.string() }),
  tuple: z.tuple([z.string(), z.number()]),
  tuplerest: z.tuple([z.string()], z.number()),
  du: z.discriminatedUnion('t', [
    z.object({ t: z.literal('a'), x: z.number() }),
    z.object({ t: z.literal('b') }),
  ]),
  lit: z.literal(['a', 1, null]),
  mult: z.number().multipleOf(0.01),
  int: z.int(),
  i32: z.int32(),
  step: z.number().step(5),
  nul: z.string().nullable(),
  def: z.object({ a: z.string().default('x') }),
  inter: z.intersection(z.object({ a: z.string() }), z.object({ b: z.number() })),
  any: z.any(),
  tmpl: z.templateLiteral(['a', z.number(), z.enum(['px', 'em'])]),
  set: z.array(z.string()).min(1).max(3),
  cb: z.email().max(64),
  em254: z.email().max(254),
  em100: z.email().max(100),
  urlp: z.url().startsWith('https://example.com/').max(200),
  datep: z.iso.date().startsWith('2024-'),
};
const list: [string, any][] = Object.entries(s).map(([k, v]) => [k, z.toJSONSchema(v, { io: 'input' })]);
const mcp = JSON.parse(readFileSync('/tmp/pk/mcp.json', 'utf8'));
for (const [a, t] of Object.entries<any>(mcp))
  for (const [b, v] of Object.entries<any>(t)) list.push([`${a}/${b}`, v]);
list.push(['HttpUrl', { format: 'uri', minLength: 1, maxLength: 2083, type: 'string' }]);
list.push(
  ['not', { type: 'string', not: { enum: ['a', 'b'] } }],
  ['notnull', { not: { type: 'null' } }],
  [
    'if',
    {
      type: 'object',
      properties: { k: { enum: ['a', 'b'] }, v: { type: 'integer' } },
      required: ['k'],
      additionalProperties: false,
      if: { properties: { k: { const: 'a' } }, required: ['k'] },
      ['then']: { required: ['v'] },
    },
  ],
);
list.push([
  'dep',
  {
    type: 'object',
    properties: { a: { type: 'null' }, b: { type: 'null' }, c: { type: 'null' } },
    additionalProperties: false,
    dependentRequired: { a: ['b'] },
  },
]);
list.push([
  'contains',
  { type: 'array', items: { type: 'integer', minimum: 0, maximum: 9 }, contains: { const: 7 }, maxItems: 4 },
]);
list.push(
  ['uniq', { type: 'array', items: { enum: ['a', 'b', 'c'] }, uniqueItems: true, minItems: 2 }],
  [
    'uniq20',
    { type: 'array', items: { enum: 'abcdefghijklmnopqrst'.split('') }, uniqueItems: true, minItems: 2 },
  ],
);
list.push(
  ['patprops', { type: 'object', patternProperties: { '^(.*)$': { type: 'number' } } }],
  [
    'patprops2',
    {
      type: 'object',
      properties: { xa: { type: 'null' } },
      patternProperties: { '^x': { type: ['null', 'integer'] }, y$: { type: 'integer' } },
      additionalProperties: { type: 'boolean' },
    },
  ],
);
list.push([
  'uneval',
  {
    allOf: [
      { type: 'object', properties: { a: { type: 'null' } } },
      { type: 'object', properties: { b: { type: 'null' } } },
    ],
    unevaluatedProperties: false,
  },
]);
list.push([
  'minprops',
  {
    type: 'object',
    properties: { a: { type: 'null' }, b: { type: 'null' }, c: { type: 'null' } },
    minProperties: 1,
    maxProperties: 2,
  },
]);
list.push([
  'decimal',
  { anyOf: [{ type: 'number' }, { type: 'string', pattern: '^(?!^[-+.]*$)[+-]?0*\\d*\\.?\\d*$' }] },
]);
list.push([
  'oneOfdef',
  {
    oneOf: [
      {
        type: 'object',
        properties: { k: { const: 'a', default: 'a' }, x: { type: 'integer' } },
        required: ['x'],
      },
      { type: 'object', properties: { k: { const: 'b', default: 'b' } } },
    ],
  },
]);
list.push([
  'oneOfneg',
  {
    oneOf: [
      { type: 'string', maxLength: 5 },
      { type: 'string', minLength: 3 },
    ],
  },
]);
it.each(list.filter(([n]) => !n.includes("/")))('%s', (name, schema) => {
  const ajv = new Ajv2020({ strict: false, multipleOfPrecision: 6, logger: false });
  (addFormats as any)(ajv);
  delete schema.$schema;
  const t0 = performance.now();
  const m = matcherOf('json_schema', schema);
  const t = performance.now() - t0;
  const ok = ajv.compile(schema);
  const random = new Random(1);
  let n = 0;
  let ex = '';
  for (let k = 0; k < 12; k++) {
    const text = randomText(m, random, 300);
    if (text === null) continue;
    n++;
    ex = String(text);
    if (!ok(JSON.parse(ex))) expect({ ex, e: ok.errors }).toBe('valid');
  }
  console.log(name, t.toFixed(0), 'states', n, ex.slice(0, 80));
  expect(n).toBeGreaterThan(0);
});
