import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { BackendName } from '../../loadgen/backends/backend.js';
import { createBackend } from '../../loadgen/backends/index.js';
import { AnswerReader } from '../../loadgen/worker/answer-reader.js';
import { chatStream, event, piece, usage } from './support/fake-llm.js';

const backendOf = (name: BackendName) =>
  createBackend({ name, model: 'm', stream: true, ignoreEos: false, fields: {} });

/** Feeds the bytes in pieces that end at these places. */
function read(name: BackendName, text: string | Buffer, cuts: readonly number[] = []): AnswerReader {
  const bytes = Buffer.from(text as string);
  const reader = new AnswerReader(backendOf(name), true, true);
  let from = 0;
  for (const cut of [...cuts.map((at) => at % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]) {
    reader.feed(bytes.subarray(from, cut));
    from = cut;
  }
  reader.end();
  return reader;
}

/** The parts of an answer that are the same however it is cut. */
const seen = ({
  pieces,
  textLength,
  answer,
  promptTokens,
  completionTokens,
  isFinished,
  fault,
}: AnswerReader) => ({
  ...{ pieces, textLength, answer, promptTokens, completionTokens, isFinished, fault },
});

const text = fc.string({
  unit: fc.oneof(
    fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
    fc.constantFrom('é', '😀', '"', '\\', '\n', '\u2028'),
  ),
  minLength: 1,
  maxLength: 6,
});
const cuts = fc.array(fc.nat(100_000), { maxLength: 30 });

describe('12: an answer cut at any byte', () => {
  it('is read as if it had come whole: text of all of Unicode, quotes and escapes', () => {
    fc.assert(
      fc.property(fc.array(text, { minLength: 1, maxLength: 12 }), cuts, (pieces, at) => {
        const stream = chatStream(pieces, 11);
        const whole = seen(read('chat', stream));
        expect(whole).toMatchObject({
          pieces: pieces.length,
          answer: pieces.join(''),
          textLength: pieces.join('').length,
          promptTokens: 11,
          completionTokens: pieces.length,
          isFinished: true,
          fault: null,
        });
        expect(seen(read('chat', stream, at))).toEqual(whole);
      }),
    );
  });

  it('with one byte at a time, and with lines that end in CR LF', () => {
    const stream = chatStream(['Füchse', ' 😀', ' und'], 5);
    const every = Array.from({ length: Buffer.byteLength(stream) }, (_, i) => i);
    expect(seen(read('chat', stream, every))).toEqual(seen(read('chat', stream)));
    const crlf = stream.replaceAll('\n', '\r\n');
    const each = Array.from({ length: Buffer.byteLength(crlf) }, (_, i) => i);
    expect(seen(read('chat', crlf, each))).toEqual(seen(read('chat', stream)));
  });

  it('with comments, events of several lines, and a stream that ends anywhere: truncated, unless it was finished', () => {
    const stream = `: hello\n\n${piece('a')}data: {"choices": [{"delta":\ndata: {"content": "b"}}]}\n\n${piece('', 'stop')}`;
    expect(seen(read('chat', stream))).toMatchObject({ answer: 'ab', fault: null });
    const finished = stream.length;
    for (let end = 1; end < finished; end++) {
      expect(read('chat', stream.slice(0, end)).fault?.outcome).toBe('truncated');
    }
  });
});

describe('the short way around JSON', () => {
  /** Reads with a parser for each event. */
  function slowly(name: BackendName, datas: readonly string[]) {
    const texts: string[] = [];
    const sink = {
      text: (t: string) => texts.push(t),
      usage: () => {},
      finish: () => {},
      goOn: () => {},
      fail: () => {},
    };
    for (const data of datas) backendOf(name).readEvent(data, { ...sink, text: (t) => void texts.push(t) });
    return texts;
  }

  const shapes: Record<'chat' | 'completions' | 'responses' | 'kserve', (text: string) => string> = {
    chat: (t) =>
      JSON.stringify({
        id: 'content',
        choices: [{ delta: { content: t }, finish_reason: null }],
        usage: null,
      }),
    completions: (t) =>
      JSON.stringify({ object: 'text', choices: [{ text: t, logprobs: null, finish_reason: null }] }),
    responses: (t) =>
      JSON.stringify({ type: 'response.output_text.delta', item_id: 'delta', delta: t, output_index: 0 }),
    kserve: (t) => JSON.stringify({ model_name: 'm', text_output: t, id: 'text_output' }),
  };

  for (const [name, shape] of Object.entries(shapes) as [keyof typeof shapes, (t: string) => string][]) {
    it(`counts and reads pieces of ${name} as JSON does`, () => {
      fc.assert(
        fc.property(
          fc.array(fc.oneof(text, fc.constantFrom('content', 'text', 'delta', 'm')), { maxLength: 20 }),
          (pieces) => {
            const datas = pieces.map(shape);
            const reader = read(name, datas.map((data) => event(data)).join(''));
            expect(reader.answer).toBe(slowly(name, datas).join(''));
            expect(reader.pieces).toBe(pieces.length);
          },
        ),
      );
    });
  }

  it('sees what else an event means: an end, a count, an error, an empty piece, another shape', () => {
    const plain = ['a', 'b', 'c'].map((t) => piece(t)).join('');
    const spaced = event('{"choices": [{"delta": {"content": "d"}, "finish_reason": null}]}');
    const reader = read('chat', `${plain}${piece('')}${spaced}${piece('e', 'length')}${usage(3, 5)}`);
    expect(seen(reader)).toMatchObject({ pieces: 5, answer: 'abcde', isFinished: true, completionTokens: 5 });
    const failed = read('chat', `${plain}${event({ error: { message: 'x' } })}`);
    expect(failed.fault).toEqual({ outcome: 'stream_error', message: 'x' });
    const broken = read('chat', plain + piece('d').replace('"d"', '"d'));
    expect(broken.fault?.outcome).toBe('malformed');
  });
});

describe('10: an answer is streamed or not by its content type', () => {
  it('reads a whole body with its counts', () => {
    const reader = new AnswerReader(backendOf('chat'), false, true);
    const body = JSON.stringify({
      choices: [{ message: { content: 'Hé' } }],
      usage: { prompt_tokens: 4, completion_tokens: 2, prompt_tokens_details: { cached_tokens: 3 } },
    });
    for (const byte of Buffer.from(body)) reader.feed(Buffer.from([byte]));
    reader.end();
    expect(reader).toMatchObject({
      pieces: 1,
      answer: 'Hé',
      promptTokens: 4,
      completionTokens: 2,
      cachedTokens: 3,
    });
    expect(reader.fault).toBeNull();
  });
});

describe('a reader that is used again', () => {
  const answers = fc.array(
    fc.record({
      pieces: fc.array(text, { maxLength: 8 }),
      id: fc.constantFrom('chatcmpl-1', 'chatcmpl-2'),
      /** Place at which the answer breaks off, as a share of it. */
      end: fc.oneof(fc.constant(1), fc.double({ min: 0, max: 1, noNaN: true })),
    }),
    { minLength: 2, maxLength: 6 },
  );

  it('reads each answer as a new one does, whatever the answer before was and where it was cut off', () => {
    fc.assert(
      fc.property(answers, cuts, (all, at) => {
        const again = new AnswerReader(backendOf('chat'), true, true);
        for (const { pieces, id, end } of all) {
          const whole = Buffer.from(chatStream(pieces, 4).replaceAll('chatcmpl-1', id));
          const bytes = whole.subarray(0, Math.round(end * whole.length));
          again.reset();
          let from = 0;
          for (const cut of [...at.map((place) => place % (bytes.length + 1)).sort((a, b) => a - b)]) {
            again.feed(bytes.subarray(from, cut));
            from = cut;
          }
          again.feed(bytes.subarray(from));
          again.end();
          expect(seen(again)).toEqual(seen(read('chat', bytes)));
        }
      }),
      { numRuns: 50 },
    );
  });

  it('takes only answers of its own kind', () => {
    const reader = new AnswerReader(backendOf('chat'), true, false);
    expect(reader.canReadAgain(true, false)).toBe(true);
    expect(reader.canReadAgain(false, false)).toBe(false);
    expect(reader.canReadAgain(true, true)).toBe(false);
  });
});
