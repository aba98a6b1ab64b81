import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { AnswerSink, Backend } from '../../loadgen/backends/backend.js';
import { AnswerReader } from '../../loadgen/worker/answer-reader.js';
import { draws } from '../support/scale.js';

/** Every event's data is a piece, whatever it is. */
const anything = (endsWithConnection: boolean): Backend => ({
  path: '/',
  body: () => '',
  readEvent: (data: string, sink: AnswerSink) => sink.text(data),
  readWhole: () => {},
  endsWithConnection,
});

/** The data of a stream's events as the HTML standard, 9.2.6, says it: line by line, over the whole text. */
function referenceEvents(bytes: Buffer): string[] {
  const text = new TextDecoder('utf-8').decode(bytes); // without a byte order mark
  const lines = text.split(/\r\n|\n|\r/);
  lines.pop(); // no line: it has no end
  const events: string[] = [];
  let data = '';
  for (const line of lines) {
    if (line === '') {
      if (data !== '') events.push(data.slice(0, -1));
      data = '';
      continue;
    }
    const colon = line.indexOf(':');
    if (colon === 0) continue;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (field === 'data') data += `${value}\n`;
  }
  return events;
}

/** Feeds the bytes in pieces that end at these places; returns what each event was. */
function read(bytes: Buffer, cuts: readonly number[], endsWithConnection = true) {
  const reader = new AnswerReader(anything(endsWithConnection), true, true);
  let from = 0;
  for (const cut of [...cuts.map((at) => at % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]) {
    reader.feed(bytes.subarray(from, cut));
    from = cut;
  }
  const pieces = reader.pieces;
  reader.end();
  return { pieces, answer: reader.answer, fault: reader.fault };
}

const words = fc.string({
  unit: fc.oneof(
    fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }).filter((one) => !/[\r\n]/.test(one)),
    fc.constantFrom(':', ' ', 'é', '😀', '\uFEFF', '"', '{', '\0'),
  ),
  maxLength: 6,
});
const field = fc.oneof(
  fc
    .tuple(fc.constantFrom('data:', 'data: ', 'data:  ', 'data :', 'Data: '), words)
    .map((parts) => parts.join('')),
  fc
    .tuple(fc.constantFrom(':', ': ', 'id:', 'id: ', 'event: ', 'retry: ', 'retry:1', 'x-own: '), words)
    .map((parts) => parts.join('')),
  fc.constantFrom('data', 'id', 'event', 'retry', 'unknown', 'retry: 10', ''),
);
/** Lines, each with an end of one of the three kinds; an empty one ends an event. */
const stream = fc
  .tuple(
    fc.constantFrom('', '\uFEFF'),
    fc.array(fc.tuple(fc.oneof(field, fc.constant('')), fc.constantFrom('\n', '\r', '\r\n')), {
      maxLength: 30,
    }),
    fc.constantFrom('', 'data: not ended', ': bye'),
  )
  .map(([mark, lines, rest]) => Buffer.from(mark + lines.flat().join('') + rest));
const cuts = fc.array(fc.nat(100_000), { maxLength: 40 });

describe('an event stream as the HTML standard has it', () => {
  it('is read as the standard reads it: every kind of line, line end and field, cut at any byte', () => {
    fc.assert(
      fc.property(stream, cuts, (bytes, at) => {
        // The pieces of a backend; an event without data has nothing to say to any.
        const expected = referenceEvents(bytes).filter((data) => data !== '');
        const { pieces, answer, fault } = read(bytes, at);
        expect({ pieces, answer }).toEqual({ pieces: expected.length, answer: expected.join('') });
        if (fault !== null) expect(['truncated', 'empty']).toContain(fault.outcome);
      }),
      { numRuns: draws(100) },
    );
  });

  it.each([
    ['a comment', ': keep-alive\n\ndata: a\n\n'],
    ['a field that it does not know', 'x-trace: 7\nunknown\ndata: a\n\n'],
    ['retry, good and bad', 'retry: 3000\n\nretry: soon\ndata: a\n\n'],
    ['a byte order mark', '\uFEFFdata: a\n\n'],
    ['ends of CR', 'data: a\r\r'],
    ['ends of CR LF', 'data: a\r\n\r\n'],
    ['data without a colon', 'data\n\ndata: a\n\n'],
    ['ids and events, empty ones too', 'id: 1\nevent: message\nid\nevent\ndata: a\n\n'],
    ['a comment behind the last event', 'data: a\n\n: bye\n'],
    ['a field behind the last event', 'data: a\n\nretry: 5\n'],
  ])('%s is no fault', (_, text) => {
    const bytes = Buffer.from(text);
    const every = Array.from({ length: bytes.length }, (_, i) => i);
    for (const at of [[], every]) expect(read(bytes, at)).toEqual({ pieces: 1, answer: 'a', fault: null });
  });

  it('joins lines of data', () => {
    expect(read(Buffer.from('data: a\ndata\ndata:  b\n\n'), [])).toMatchObject({
      answer: 'a\n\n b',
      fault: null,
    });
  });

  it.each(['data: a\n\ndata: b', 'data: a\n\ndata: b\n', 'data: a\n\nda', 'data: a\r\n\r\ndata: b\r'])(
    '%j ends within an event',
    (text) => {
      const { pieces, fault } = read(Buffer.from(text), []);
      expect([pieces, fault?.outcome, fault?.message]).toEqual([
        1,
        'truncated',
        'The stream ends within an event.',
      ]);
    },
  );

  it('tells an event when its last line end has come, with CR too: what it measures are times', () => {
    const reader = new AnswerReader(anything(true), true, true);
    reader.feed(Buffer.from('data: a\r'));
    expect(reader.pieces).toBe(0);
    reader.feed(Buffer.from('\r'));
    expect(reader.pieces).toBe(1);
    reader.feed(Buffer.from('\ndata: b\r\n\r'));
    expect(reader.pieces).toBe(2);
  });
});
