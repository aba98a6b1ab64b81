import { describe, expect, it } from 'vitest';
import { PictureDecoderError, PicturesBusyError } from '../../../../models/images/picture-error.js';
import { base64Of, dataUrl, IMAGE, seeingToy } from '../../support/fake-sight.js';
import { bytesOf, TOY_VOCAB } from '../../support/toy-codec.js';
import { say, toyServer } from '../../support/toy-server.js';

const CHAT = '/v1/chat/completions';
const text = (one: string) => ({ type: 'text', text: one });
const image = (url: string) => ({ type: 'image_url', image_url: { url, detail: 'low' } });
const user = (...content: object[]) => ({ role: 'user', content });

function serverOf(fail?: (file: Uint8Array) => Error | null) {
  const seeing = seeingToy(fail);
  const toy = toyServer(() => say('x'), { model: seeing.fields, unknownFields: 'refuse' });
  const post = async (path: string, body: object) => {
    const response = await toy.post(path, body);
    return { status: response.status, headers: response.headers, json: (await response.json()) as never };
  };
  return { ...seeing, toy, post };
}

async function refusal(body: object, server = serverOf()) {
  const { status, json, headers } = await server.post(CHAT, body);
  const { error } = json as { error: { message: string; param: string; code: string } };
  expect(server.toy.engine.requests).toEqual([]);
  expect(error.message).toMatch(/^[^\n]*\.$/);
  return { status, retry: headers.get('retry-after'), ...error };
}

describe('pictures of /v1/chat/completions', () => {
  it('are read in their order, and reach the engine where they stand', async () => {
    const { post, read, toy } = serverOf();
    const messages = [
      user(image(dataUrl(5)), text('a')),
      { role: 'assistant', content: 'b' },
      user(text('c'), { type: 'image_url', image_url: dataUrl(9) }, text('d')),
    ];
    const { status, json } = await post(CHAT, { messages });
    expect(status).toBe(200);
    expect(read).toEqual([
      { file: [5], length: 1, place: 'messages[0].content[0].image_url' },
      { file: [9], length: 1, place: 'messages[2].content[1].image_url' },
    ]);
    const seen = (one: number) => [TOY_VOCAB + one, TOY_VOCAB + one + 1];
    const prompt = [...bytesOf('u'), ...seen(5), ...bytesOf('aabuc'), ...seen(9), ...bytesOf('d')];
    expect(toy.engine.requests[0]).toMatchObject({
      promptTokens: Int32Array.from(prompt),
      imageGrids: [
        [1, 1, 2],
        [8, 1, 2],
      ],
      promptEmbeddings: [5, 5, 9, 9].map((one, i) => Float32Array.of(one, i % 2)),
    });
    expect(json).toMatchObject({
      usage: { prompt_tokens: 11, prompt_tokens_details: { image_tokens: 4 } },
    });
  });

  it('are told of in streams and token ids, where they have the ids of the vocabulary', async () => {
    const { post, toy } = serverOf();
    const messages = [user(image(dataUrl(5)))];
    const { json } = await post(CHAT, { messages, return_token_ids: true });
    expect(json).toMatchObject({ prompt_token_ids: [117, IMAGE, IMAGE] });
    const streamed = await toy.post(CHAT, {
      messages,
      stream: true,
      stream_options: { include_usage: true },
    });
    expect(await streamed.text()).toContain('"prompt_tokens_details":{"cached_tokens":0,"image_tokens":2}');
    const counted = await post('/tokenize', { messages });
    expect(counted.json).toMatchObject({ count: 3, tokens: [117, IMAGE, IMAGE] });
    const none = await post(CHAT, { messages: [user(text('a'))] });
    expect((none.json as { usage: object }).usage).not.toHaveProperty('prompt_tokens_details.image_tokens');
  });

  it.each<[string, object, string, string | RegExp]>([
    [
      'an address',
      image('https://a.example/b.png'),
      '.image_url',
      /none is fetched here.*--allow-image-urls/,
    ],
    [
      'an address that is not https:',
      image('http://a.example/b.png'),
      '.image_url',
      /is not https:, and no other is fetched: send its bytes in a data: URL\.$/,
    ],
    ['a file', image('file:///etc/passwd'), '.image_url', 'is no data: URL'],
    ['an URL without base64', image('data:image/png,abc'), '.image_url', 'is no data: URL with base64'],
    ['other characters', image('data:;base64,ab*d'), '.image_url', 'has other characters'],
    ['only other characters', image('data:image/png;base64,!!!!'), '.image_url', 'has other characters'],
    ['base64 that breaks off', image('data:;base64,A'), '.image_url', 'breaks off'],
    ['an empty file', image('data:;base64,'), '.image_url', 'is empty'],
    ['no picture', image(dataUrl(0)), '.image_url', 'it is no picture'],
    ['a part without one', { type: 'image_url' }, '.image_url', 'the URL of a picture'],
    ['a file that is none', { type: 'file', file: {} }, '.file', 'one of file_id and file_data'],
    ['an unknown field', { ...image(dataUrl(5)), url: 'x' }, '.url', 'Unknown field'],
    [
      "another API's part",
      { type: 'input_image', image_url: dataUrl(5) },
      '',
      /parts of type 'input_image', which are those of \/v1\/responses: a picture is \{"type": "image_url"/,
    ],
    ['sound', { type: 'input_audio' }, '', 'the model reads text'],
  ])('are refused: %s', async (_, part, place, sentence) => {
    const { status, message, param } = await refusal({ messages: [user(text('a'), part)] });
    expect([status, param]).toEqual([400, `messages[0].content[1]${place}`]);
    expect(message).toMatch(sentence);
  });

  it('are refused in messages of others than the user', async () => {
    const messages = [{ role: 'system', content: [image(dataUrl(5))] }, user(text('a'))];
    const { message, param } = await refusal({ messages });
    expect(param).toBe('messages[0].content[0]');
    expect(message).toContain("outside of a user's message");
  });

  it('are refused by a model that sees none, with its reason', async () => {
    const body = { messages: [user(image(dataUrl(5)))] };
    const blind = async (fields: object) => {
      const toy = toyServer(() => say('x'), { model: fields });
      const response = await toy.post(CHAT, body);
      return { status: response.status, ...((await response.json()) as object) };
    };
    const param = 'messages[0].content[0].image_url';
    expect(await blind({})).toMatchObject({
      status: 400,
      error: { param, message: `'${param}' has a picture, which is not taken: the model reads text alone.` },
    });
    expect(await blind({ whyBlind: 'The tokenizer has none.' })).toMatchObject({
      error: { message: `'${param}' has a picture, which is not taken: The tokenizer has none.` },
    });
  });

  it('are at most sixteen, and are not cut', async () => {
    const many = Array.from({ length: 17 }, () => image(dataUrl(5)));
    const tooMany = await refusal({ messages: [user(...many.slice(1)), user(many[0]!)] });
    expect(tooMany).toMatchObject({ status: 400, param: 'messages', code: 'invalid_image' });
    expect(tooMany.message).toBe('The request has 17 pictures, and may have 16.');
    const messages = [user(image(dataUrl(5)), text('abc'))];
    const cut = await refusal({ messages, truncate_prompt_tokens: 3 });
    expect(cut).toMatchObject({ status: 400, param: 'truncate_prompt_tokens' });
    const whole = serverOf();
    expect((await whole.post(CHAT, { messages, truncate_prompt_tokens: 6 })).status).toBe(200);
    const logProbs = await refusal({ messages, prompt_logprobs: 1 });
    expect(logProbs).toMatchObject({ status: 400, param: 'prompt_logprobs' });
  });

  it('fail as the server does where it is busy, or cannot decode', async () => {
    const body = { messages: [user(image(dataUrl(5)))] };
    const busy = serverOf(() => new PicturesBusyError('Too many pictures are waiting; try again later.'));
    expect(await refusal(body, busy)).toMatchObject({ status: 429, code: 'queue_full', retry: '1' });
    const lost = serverOf(() => new PictureDecoderError('The picture was not decoded: it is lost.'));
    expect(await refusal(body, lost)).toMatchObject({ status: 500, code: 'picture_decoder_failed' });
  });

  it('of twelve million bytes come through the limit of a body, and no more', async () => {
    const file = new Uint8Array(12e6).fill(7);
    const ofBytes = (bytes: Uint8Array) => `data:;base64,${Buffer.from(bytes).toString('base64')}`;
    const { post, read } = serverOf();
    expect((await post(CHAT, { messages: [user(image(ofBytes(file)))] })).status).toBe(200);
    expect(read[0]!.length).toBe(12e6);
    const larger = await refusal({
      messages: [user(image(ofBytes(file)), { ...image(`data:;base64,${base64Of(7)}`) })],
    });
    expect(larger.message).toContain('12000001 bytes together, and may have 12000000.');
  });
});
