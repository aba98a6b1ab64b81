/** Nested arrays or objects as JSON text: no serialiser could write it. */
export function nested(levels: number, open = '[', inside = '', close = ']'): string {
  return open.repeat(levels) + inside + close.repeat(levels);
}

/** Values that no field wants or that few do, as JSON text. */
export const HOSTILE_VALUES: readonly string[] = [
  ...['null', 'true', 'false', '0', '-0', '-1', '1', '2', '1.5', '1e308', '-1e308', '5e-324', '1e999'],
  ...['9007199254740993', '-9007199254740993', '18446744073709551616', '4294967296', '1'.repeat(400)],
  ...[
    '""',
    '"x"',
    '"NaN"',
    '"Infinity"',
    '"1"',
    '"\\ud800"',
    '"\\u0000"',
    '"<|im_end|>"',
    `"${'y'.repeat(20_000)}"`,
  ],
  ...['[]', '[[]]', '[null]', '[""]', '["\\udfff"]', '[-1]', '[1e308]', '[1.5]', '[{}]', '[[[1]]]'],
  ...['{}', '{"a":1}', '{"type":"x"}', '{"type":null}', '{"1":1}', '{"-1":1}', '{"1":"1"}', '{"1e400":1}'],
  ...['{"__proto__":{"polluted":1}}', '{"constructor":{"prototype":{"polluted":1}}}', '{"toString":1}'],
  ...['{"type":"json_schema","json_schema":{"name":"x","schema":{"$ref":"#"}}}', '{"type":"json_schema"}'],
  ...['{"json":{"type":["x"]}}', '{"regex":"("}', '{"grammar":"root ::= root"}', '{"choice":[]}'],
  nested(10_000),
  nested(10_000, '{"a":', '1', '}'),
  `[${'1,'.repeat(20_000)}1]`,
  `[${'"",'.repeat(10_000)}""]`,
  `{${Array.from({ length: 5000 }, (_, i) => `"k${i}":1`).join(',')}}`,
];

/** Bodies that are no JSON object, or none in UTF-8. */
export const HOSTILE_BODIES: Readonly<Record<string, string | Uint8Array>> = {
  nothing: '',
  space: '   ',
  'half an object': '{"model":',
  'a word': 'hello',
  null: 'null',
  'a number': '5',
  'a text': '"messages"',
  'a list': '[{"messages":[]}]',
  'two objects': '{}{}',
  'a comma too many': '{"stream":true,}',
  'single quotes': "{'stream':true}",
  'a comment': '{/* */}',
  'a byte order mark and nothing': '\ufeff',
  'a control character in a text': '{"model":"\u0001"}',
  'a half escape': '{"model":"\\u00"}',
  'NaN as a number': '{"temperature":NaN}',
  'hexadecimal numbers': '{"max_tokens":0x10}',
  'bytes that are not UTF-8': Uint8Array.of(0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d),
  'an overlong encoding': Uint8Array.of(0x22, 0xc0, 0xaf, 0x22),
  'a surrogate in UTF-8': Uint8Array.of(0x22, 0xed, 0xa0, 0x80, 0x22),
  'half a character': Uint8Array.of(0x22, 0xe2, 0x82),
  'UTF-16': new Uint8Array(Buffer.from('{"stream":true}', 'utf16le')),
  'lists in lists, never closed': '['.repeat(100_000),
  'lists in lists, closed': nested(100_000),
  'objects in objects': nested(100_000, '{"a":', '1', '}'),
  'fields of nothing': `{${'"":1,'.repeat(10_000)}"":1}`,
};
