import { describe, expect, it } from 'vitest';
import { createBackend } from '../../loadgen/backends/index.js';
import { AnswerReader } from '../../loadgen/worker/answer-reader.js';

const backendOf = (stream: boolean, fields: Record<string, unknown> = {}) =>
  createBackend({ name: 'kserve', model: 'my model', stream, ignoreEos: false, fields });
const turn = { prompt: 'client input', maxTokens: 8 };

function read(body: string, isStream: boolean): AnswerReader {
  const reader = new AnswerReader(backendOf(isStream), isStream, true);
  reader.feed(Buffer.from(body));
  reader.end();
  return reader;
}

const events = (...data: object[]) => data.map((one) => `data: ${JSON.stringify(one)}\n\n`).join('');
/** Responses as Triton's description of the extension has them. */
const triton = (text: string) => ({ model_name: 'mymodel', model_version: '1', text_output: text });
/** An event of a stream as the Open Inference Protocol has it. */
const oip = (text: string, done: boolean) => ({ text_output: text, model_name: 'mymodel', done });

describe("the generate extension of KServe's v2 protocol", () => {
  it('has the paths of a model, escaped, and text_input with what else the model takes', () => {
    expect(backendOf(true).path).toBe('/v2/models/my%20model/generate_stream');
    expect(backendOf(false).path).toBe('/v2/models/my%20model/generate');
    expect(JSON.parse(backendOf(true, { temperature: 0 }).body(turn, []))).toEqual({
      ...{ text_input: 'client input', stream: true, max_tokens: 8, temperature: 0 },
    });
    const talk = backendOf(true).body(turn, [{ role: 'user', content: 'before' }]);
    expect(JSON.parse(talk)).toMatchObject({ text_input: 'before\nclient input' });
  });

  it('puts everything else into parameters where these are asked for', () => {
    const body = backendOf(false, { parameters: { temperature: 0, max_tokens: 3 }, id: '1' }).body(turn, []);
    expect(JSON.parse(body)).toEqual({
      ...{
        text_input: 'client input',
        id: '1',
        parameters: { stream: false, max_tokens: 3, temperature: 0 },
      },
    });
    expect(JSON.parse(backendOf(true, { parameters: {} }).body(turn, []))).toEqual({
      ...{ text_input: 'client input', parameters: { stream: true, max_tokens: 8 } },
    });
  });

  it("reads Triton's: one object, or one for each event of a stream that ends with the connection", () => {
    const whole = read(JSON.stringify(triton('model output')), false);
    expect([whole.fault, whole.pieces, whole.answer]).toEqual([null, 1, 'model output']);
    const stream = read(events(triton(' a'), triton(''), triton(' b'), triton(' c')), true);
    expect([stream.fault, stream.pieces, stream.answer]).toEqual([null, 3, ' a b c']);
    expect(stream.completionTokens).toBeNaN();
  });

  it('takes an error in a stream whose status was good for one', () => {
    const { fault, pieces } = read(events(triton('a'), { error: 'out of memory' }), true);
    expect([fault, pieces]).toEqual([{ outcome: 'stream_error', message: 'out of memory' }, 1]);
  });

  it("reads the Open Inference Protocol's: a stream is over when it says done, and cut off before", () => {
    const whole = read(events(oip(' a', false), oip(' b', false), oip(' c', true)), true);
    expect([whole.fault, whole.pieces, whole.answer]).toEqual([null, 3, ' a b c']);
    const cut = read(events(oip(' a', false), oip(' b', false), oip(' c', false)), true);
    expect(cut.fault?.outcome).toBe('truncated');
    const half = read(events(oip(' a', false)) + events(oip(' b', true)).slice(0, -9), true);
    expect(half.fault?.outcome).toBe('truncated');
    expect(read(events(oip('', true)), true).fault?.outcome).toBe('empty');
  });

  it('has forgotten the end mark of one stream when it reads the next', () => {
    const reader = new AnswerReader(backendOf(true), true, true);
    reader.feed(Buffer.from(events(oip('a', false))));
    reader.reset();
    reader.feed(Buffer.from(events(triton('b'))));
    reader.end();
    expect([reader.fault, reader.answer]).toEqual([null, 'b']);
  });
});
