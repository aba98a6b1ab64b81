import { describe, expect, it } from 'vitest';
import { planChat, plannedFields } from '../../../../src/generation/chat-plan.js';
import type { Picture, SeenPicture, Sight } from '../../../../src/generation/pictures/picture.js';
import { imageTokensOf, seenRequest } from '../../../../src/generation/pictures/seen-request.js';
import { gridsIn, rowsOfPictures, spelled } from '../../../../src/generation/pictures/spell-pictures.js';
import { generateText } from '../../../../src/generation/text-generation.js';
import type { ChatRenderOptions, TextModel } from '../../../../src/generation/text-model.js';
import { FakeEngine } from '../../support/fake-engine.js';
import { toyCodec } from '../../support/toy-codec.js';

const IMAGE = 31;
const VOCAB = 100;

function picture(first: number, ...grids: [rows: number, columns: number][]): Picture {
  const count = grids.reduce((sum, [rows, columns]) => sum + rows * columns, 0);
  return {
    text: '<image>'.repeat(count),
    grids: grids.map(([rows, columns]) => ({ rows, columns })),
    bytes: 0,
    decode: async () => decoded(first, count),
  };
}

function decoded(first: number, count: number): SeenPicture {
  return {
    ids: Int32Array.from({ length: count }, (_, i) => VOCAB + first + i),
    rows: async () => Float32Array.from({ length: 2 * count }, (_, i) => first + i),
  };
}

const sight: Sight = {
  placeholder: '<image>',
  tokenId: IMAGE,
  look: () => {
    throw new Error('not looked at here');
  },
};

describe('the tokens of pictures in a prompt', () => {
  it('become the ids that spell them, run by run', () => {
    const tokens = [5, IMAGE, IMAGE, 6, IMAGE, 7, IMAGE, IMAGE, IMAGE, IMAGE, 8];
    const grids = gridsIn(tokens, IMAGE, [picture(10, [1, 2], [1, 1]), picture(50, [2, 2])]);
    expect(grids).toEqual([
      [1, 1, 2],
      [4, 1, 1],
      [6, 2, 2],
    ]);
    expect(spelled(tokens, grids, [decoded(10, 3), decoded(50, 4)])).toEqual(
      Int32Array.of(5, 110, 111, 6, 112, 7, 150, 151, 152, 153, 8),
    );
  });

  it('may stand side by side', () => {
    const grids = gridsIn([IMAGE, IMAGE, IMAGE], IMAGE, [picture(1, [1, 2]), picture(9, [1, 1])]);
    expect(grids).toEqual([
      [0, 1, 2],
      [2, 1, 1],
    ]);
  });

  it.each([
    [[IMAGE], [picture(1, [1, 2])], 'has 1 tokens side by side where a picture has 1 x 2'],
    [[IMAGE, 5, IMAGE], [picture(1, [1, 2])], 'has 1 tokens side by side where a picture has 1 x 2'],
    [[5], [picture(1, [1, 1])], 'has fewer tokens of pictures than its pictures'],
    [[IMAGE, IMAGE], [picture(1, [1, 1])], 'has more tokens of pictures than its pictures'],
  ])('are refused where they are others: %j', (tokens, pictures, sentence) => {
    expect(() => gridsIn(tokens, IMAGE, pictures)).toThrow(sentence);
  });

  it('have a row each, in the order of their places', async () => {
    const rows = await rowsOfPictures([decoded(1, 2), decoded(9, 1)]);
    expect(rows.map((row) => [...row])).toEqual([
      [1, 2],
      [3, 4],
      [9, 10],
    ]);
  });
});

describe('a chat with pictures', () => {
  const messages = [{ role: 'user', content: [{ type: 'image' }, { type: 'text', text: 'x' }] }];

  function modelOf(changes: Partial<TextModel> = {}) {
    const engine = new FakeEngine(() => []);
    let rendered: ChatRenderOptions | undefined;
    const codec = {
      ...toyCodec,
      encodeChat: (_: unknown, options: ChatRenderOptions) => {
        rendered = options;
        return [1, IMAGE, IMAGE, 2];
      },
    };
    const limits = { vocabSize: VOCAB, maxInputLen: 50, maxSeqLen: 60, endTokens: [0] };
    const model: TextModel = { codec, engine, ...limits, sight, ...changes };
    return { model, engine, rendered: () => rendered };
  }

  it('has their texts in its template, and their ids, grids and rows in its request', async () => {
    const { model, engine, rendered } = modelOf();
    const plan = await planChat(model, { messages, pictures: [picture(5, [1, 2])] });
    expect(rendered()!.pictures).toEqual({ placeholder: '<image>', texts: ['<image><image>'] });
    expect(plan.promptTokens).toEqual([1, IMAGE, IMAGE, 2]);
    expect(imageTokensOf(plan)).toBe(2);
    generateText(model, await seenRequest(model, { ...plannedFields(plan), maxTokens: 3 }));
    expect(engine.requests.at(-1)).toMatchObject({
      promptTokens: Int32Array.of(1, 105, 106, 2),
      imageGrids: [[1, 1, 2]],
      promptEmbeddings: [Float32Array.of(5, 6), Float32Array.of(7, 8)],
    });
  });

  it('is refused by a model that reads text alone, and not decoded where it is too long or the queue is full', async () => {
    const blind = modelOf({ sight: null }).model;
    await expect(planChat(blind, { messages, pictures: [picture(5, [1, 2])] })).rejects.toThrow(
      "'messages' has a picture, which is not taken: the model reads text alone.",
    );
    const unseen = { ...picture(5, [1, 2]), decode: () => Promise.reject(new Error('decoded')) };
    const ask = async (model: TextModel) => {
      const plan = await planChat(model, { messages, pictures: [unseen] });
      await seenRequest(model, { ...plannedFields(plan), maxTokens: 1 }, { queueKey: 'key' });
    };
    await expect(ask(modelOf({ maxInputLen: 3 }).model)).rejects.toThrow(/4 tokens, of 3 at most/);
    const { model, engine } = modelOf();
    const full = Object.assign(engine, {
      checkRoom: (key: string) => {
        throw new Error(`no room for ${key}`);
      },
    });
    await expect(ask({ ...model, engine: full })).rejects.toThrow('no room for key');
    await expect(ask(modelOf().model)).rejects.toThrow('decoded');
  });
});
