import * as z from 'zod';
import type { WrittenSchema } from './judge.js';

const tree: z.ZodType = z.object({ name: z.string(), children: z.lazy(() => z.array(tree)) });
const UUID = '123e4567-e89b-42d3-a456-426614174000';

/** Schemas as people write them with Zod 4, each with values that it takes. */
export const EVERYDAY_ZOD: Readonly<Record<string, [z.ZodType, ...unknown[]]>> = {
  email: [z.email(), 'ada.lovelace@example.co.uk'],
  'email of 64': [z.email().max(64), 'ada@example.com'],
  'email of 254': [z.email().max(254), 'ada@example.com'],
  uuid: [z.uuid(), UUID],
  uuidv4: [z.uuidv4(), UUID],
  url: [z.url(), 'https://example.com/a/b?c=d#e', 'file:///tmp/x', 'mailto:ada@example.com'],
  'url of a site': [z.url().startsWith('https://example.com/').max(200), 'https://example.com/x'],
  hostname: [z.hostname(), 'www.example.com'],
  emoji: [z.emoji(), '🎉'],
  nanoid: [z.nanoid(), 'V1StGXR8_Z5jdHi6B-myT'],
  cuid: [z.cuid(), 'cjld2cjxh0000qzrmn831i7rn'],
  cuid2: [z.cuid2(), 'tz4a98xxat96iws9zmbrgj3a'],
  ulid: [z.ulid(), '01ARZ3NDEKTSV4RRFFQ69G5FAV'],
  ipv4: [z.ipv4(), '192.168.0.1'],
  ipv6: [z.ipv6(), '2001:db8::1', '::'],
  cidrv4: [z.cidrv4(), '10.0.0.0/8'],
  base64: [z.base64(), 'aGVsbG8=', ''],
  base64url: [z.base64url(), 'aGVsbG8'],
  e164: [z.e164(), '+4930123456'],
  jwt: [z.jwt(), 'e30.e30.c2ln'],
  'iso date': [z.iso.date(), '2024-02-29'],
  'iso time': [z.iso.time(), '12:30', '12:30:15.5'],
  'iso datetime': [z.iso.datetime(), '2026-02-03T12:30:15.123Z'],
  'local datetime': [
    z.iso.datetime({ local: true, offset: true }),
    '2026-02-03T12:30',
    '2026-02-03T12:30:00+01:00',
  ],
  'iso duration': [z.iso.duration(), 'P1DT2H', 'P3W'],
  startsWith: [z.string().startsWith('sk-'), 'sk-1'],
  endsWith: [z.string().endsWith('.png').min(6), 'ab.png'],
  includes: [z.string().includes('/').max(8), 'a/b'],
  'all three': [z.string().startsWith('https://').endsWith('.png').includes('x/y'), 'https://x/y.png'],
  'pattern with lengths': [
    z
      .string()
      .regex(/^[a-z0-9-]+$/)
      .min(3)
      .max(40),
    'a-slug',
  ],
  'unanchored pattern': [z.string().regex(/\d{3}/).max(10), 'abc123d'],
  'two patterns': [z.string().regex(/[A-Z]/).regex(/\d/).min(8).max(20), 'Passw0rd'],
  lowercase: [z.string().lowercase().min(2), 'abc'],
  template: [z.templateLiteral(['w-', z.number(), z.enum(['px', 'em'])]), 'w-12px'],
  record: [z.record(z.string(), z.number()), { a: 1, b: 2.5 }, {}],
  'record of an enum': [z.record(z.enum(['a', 'b']), z.number()), { a: 1, b: 2 }],
  'partial record': [z.partialRecord(z.enum(['a', 'b']), z.number()), { b: 2 }, {}],
  'record with a pattern': [z.record(z.string().regex(/^x-/), z.boolean()), { 'x-a': true }],
  'record of short names': [z.record(z.string().min(1).max(8), z.int()), { short: 1 }],
  'loose object': [z.looseObject({ a: z.string() }), { a: 'x', b: [1] }],
  'strict object': [z.strictObject({ a: z.string().optional() }), {}, { a: 'x' }],
  tuple: [z.tuple([z.string(), z.number()]), ['a', 1]],
  'tuple with a rest': [z.tuple([z.string()], z.number()), ['a'], ['a', 1, 2]],
  literals: [z.literal(['a', 1, null, true]), 'a', 1, null, true],
  nullable: [z.object({ a: z.string().nullable(), b: z.int().nullish() }), { a: null }, { a: 'x', b: null }],
  defaults: [
    z.object({ a: z.string().default('x'), n: z.int().min(1).max(5).default(3) }),
    {},
    { a: 'y', n: 1 },
  ],
  'int range': [z.int().min(1).max(100), 42],
  decimals: [z.number().multipleOf(0.01).min(0), 0.07, 12.5, 3],
  steps: [z.int().multipleOf(15).max(600), 45],
  int32: [z.int32(), -7],
  'discriminated union': [
    z.discriminatedUnion('type', [
      z.object({ type: z.literal('text'), text: z.string() }),
      z.object({ type: z.literal('image'), url: z.url() }),
      z.object({ type: z.literal(['pause', 'stop']) }),
    ]),
    { type: 'text', text: 'x' },
    { type: 'image', url: 'https://example.com/a.png' },
    { type: 'stop' },
  ],
  'discriminator with a default': [
    z.discriminatedUnion('kind', [
      z.object({ kind: z.literal('a').default('a'), x: z.int() }),
      z.object({ kind: z.literal('b').default('b') }),
    ]),
    { kind: 'a', x: 1 },
    { kind: 'b' },
  ],
  union: [z.union([z.string().max(3), z.int(), z.array(z.boolean())]), 'abc', 3, [true]],
  'exclusive union': [z.xor([z.string().max(5), z.string().min(3)]), 'a', 'abcdefg'],
  intersection: [z.intersection(z.object({ a: z.string() }), z.object({ b: z.number() })), { a: 'x', b: 1 }],
  recursive: [tree, { name: 'a', children: [{ name: 'b', children: [] }] }],
  'list of an enum': [
    z
      .array(z.enum(['red', 'green']))
      .min(1)
      .max(3),
    ['red', 'red'],
  ],
  'never as a property': [z.object({ a: z.string(), b: z.never().optional() }), { a: 'x' }],
};

export const ZOD_SCHEMAS: readonly WrittenSchema[] = Object.entries(EVERYDAY_ZOD).map(
  ([name, [schema, ...values]]) => ({
    name: `zod: ${name}`,
    schema: z.toJSONSchema(schema, { io: 'input' }),
    values,
  }),
);
