import { describe, expect, it } from 'vitest';
import type { TextCodec } from '../../../../src/generation/text-model.js';
import { BOS_TOKEN, bytesOf, toyCodec } from '../../support/toy-codec.js';
import { readChunks, readFrames, say, toyServer } from '../../support/toy-server.js';

const MARKERS = ['<|fim_prefix|>', '<|fim_suffix|>', '<|fim_middle|>', '<|repo_name|>', '<|file_sep|>'];
const [PREFIX, SUFFIX, MIDDLE, REPOSITORY, FILE] = [300, 301, 302, 303, 304];

/** Tokens from 300 on are the markers. */
const codecOf = (markers: readonly string[]): TextCodec => ({
  ...toyCodec,
  encodePiece: (text) => (markers.includes(text) ? [300 + markers.indexOf(text)] : bytesOf(text)),
  // The toy's own would read bytes alone.
  encodeTexts: undefined as never,
});
const server = (markers = MARKERS.slice(0, 3), more: object = {}) =>
  toyServer(() => say('x\ny'), { model: { codec: codecOf(markers), vocabSize: 400, ...more } });
const body = { input_prefix: 'ab', input_suffix: 'c', n_predict: 8 };

describe('POST /infill', () => {
  it("answers in llama.cpp's form", async () => {
    const toy = server();
    const answer = await (await toy.post('/infill', { ...body, prompt: 'p', return_tokens: true })).json();
    expect(Array.from(toy.engine.requests[0]!.promptTokens)).toEqual([
      ...[BOS_TOKEN, PREFIX, 97, 98, 112],
      ...[SUFFIX, 99, MIDDLE],
    ]);
    expect(answer).toMatchObject({
      index: 0,
      content: 'x\ny',
      tokens: bytesOf('x\ny'),
      id_slot: -1,
      stop: true,
      model: 'toy',
      tokens_predicted: 3,
      tokens_evaluated: 8,
      generation_settings: { n_predict: 8 },
      has_new_line: true,
      truncated: false,
      stop_type: 'eos',
      stopping_word: '',
      tokens_cached: 11,
      timings: { prompt_n: 8, predicted_n: 3 },
    });
  });

  it('streams pieces, the last with the rest and without [DONE]', async () => {
    const response = await server().post('/infill', { ...body, stream: true });
    const chunks = await readChunks<{ content: string; stop: boolean; stop_type?: string }>(response.clone());
    expect(chunks.map(({ content }) => content).join('')).toBe('x\ny');
    expect(chunks.map(({ stop }) => stop)).toEqual([false, false, false, true]);
    expect(chunks.at(-1)).toMatchObject({ stop_type: 'eos', model: 'toy', tokens_predicted: 3 });
    expect((await readFrames(response)).data).not.toContain('[DONE]');
  });

  it('tells why it ended, and only the fields that are wanted', async () => {
    const word = await (await server().post('/infill', { ...body, stop: ['\n'] })).json();
    expect(word).toMatchObject({ content: 'x', stop_type: 'word', stopping_word: '\n' });
    const some = { ...body, response_fields: ['content', 'timings/prompt_n', 'nothing'] };
    expect(await (await server().post('/infill', some)).json()).toEqual({
      content: 'x\ny',
      'timings/prompt_n': 7,
    });
  });

  it('has other files in front, with the tokens of repositories or a line between', async () => {
    const extra = { ...body, input_extra: [{ filename: 'f', text: 'ef' }] };
    const toy = server(MARKERS);
    await toy.post('/infill', extra);
    expect(Array.from(toy.engine.requests[0]!.promptTokens)).toEqual([
      ...[BOS_TOKEN, REPOSITORY, ...bytesOf('myproject\n')],
      ...[FILE, ...bytesOf('f\nef'), FILE, ...bytesOf('filename\n')],
      ...[PREFIX, 97, 98, SUFFIX, 99, MIDDLE],
    ]);
    const plain = server();
    await plain.post('/infill', extra);
    expect(Array.from(plain.engine.requests[0]!.promptTokens)).toEqual([
      ...[BOS_TOKEN, ...bytesOf('\n\n--- snippet ---\n\nef')],
      ...[PREFIX, 97, 98, SUFFIX, 99, MIDDLE],
    ]);
  });

  it('cuts what is farthest from the gap', async () => {
    const toy = server();
    const long = {
      ...body,
      input_prefix: `${'x'.repeat(500)}ab`,
      input_suffix: `c${'y'.repeat(500)}`,
      input_extra: [{ text: 'z'.repeat(500) }],
    };
    expect(await (await toy.post('/infill', long)).json()).toMatchObject({ truncated: true });
    const tokens = Array.from(toy.engine.requests[0]!.promptTokens);
    expect(tokens).toHaveLength(200);
    const before = tokens.slice(tokens.indexOf(PREFIX!) + 1, tokens.indexOf(SUFFIX!));
    const behind = tokens.slice(tokens.indexOf(SUFFIX!) + 1, -1);
    expect([before.length, before.slice(-2), behind[0], behind.length]).toEqual([147, [97, 98], 99, 47]);
  });

  it('takes what editors send, and refuses what it does not have', async () => {
    const editor = {
      samplers: ['top_k', 'infill'],
      n_indent: 4,
      t_max_predict_ms: 1000,
      id_slot: 0,
      cache_prompt: true,
    };
    const taken = await server().post('/infill', { ...body, ...editor });
    expect([taken.status, taken.headers.get('x-unknown-fields')]).toEqual([200, null]);
    const refusal = async (more: object, toy = server()) => {
      const response = await toy.post('/infill', { ...body, ...more });
      return [response.status, ((await response.json()) as { error: { param: string } }).error.param];
    };
    expect(await refusal({}, server([]))).toEqual([400, 'model']);
    expect(await refusal({ input_prefix: undefined })).toEqual([400, 'input_prefix']);
    expect(await refusal({ n_predict: 256 })).toEqual([400, 'n_predict']);
    expect(await refusal({ prompt: 'x'.repeat(300) })).toEqual([400, 'input_prefix']);
    expect(await refusal({ tfs_z: 0.5 })).toEqual([400, 'tfs_z']);
  });
});
