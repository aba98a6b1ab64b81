import { describe, expect, it } from 'vitest';
import { planChat, plannedFields } from '../../../../src/generation/chat-plan.js';
import type { Picture, Sight } from '../../../../src/generation/pictures/picture.js';
import { rowsOfPictures, spellPictures } from '../../../../src/generation/pictures/spell-pictures.js';
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
    ids: Int32Array.from({ length: count }, (_, i) => VOCAB + first + i),
    grids: grids.map(([rows, columns]) => ({ rows, columns })),
    bytes: 0,
    rows: async () => Float32Array.from({ length: 2 * count }, (_, i) => first + i),
  };
}

const sight: Sight = {
  placeholder: '<image>',
  tokenId: IMAGE,
  read: () => Promise.reject(new Error('not read here')),
};

describe('the tokens of pictures in a prompt', () => {
  it('become the ids that spell them, run by run', () => {
    const tokens = [5, IMAGE, IMAGE, 6, IMAGE, 7, IMAGE, IMAGE, IMAGE, IMAGE, 8];
    const pictures = [picture(10, [1, 2], [1, 1]), picture(50, [2, 2])];
    expect(spellPictures(tokens, IMAGE, pictures)).toEqual({
      promptTokens: Int32Array.of(5, 110, 111, 6, 112, 7, 150, 151, 152, 153, 8),
      imageGrids: [
        [1, 1, 2],
        [4, 1, 1],
        [6, 2, 2],
      ],
    });
  });

  it('may stand side by side', () => {
    const { imageGrids } = spellPictures([IMAGE, IMAGE, IMAGE], IMAGE, [
      picture(1, [1, 2]),
      picture(9, [1, 1]),
    ]);
    expect(imageGrids).toEqual([
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
    expect(() => spellPictures(tokens, IMAGE, pictures)).toThrow(sentence);
  });

  it('have a row each, in the order of their places', async () => {
    const rows = await rowsOfPictures([picture(1, [1, 2]), picture(9, [1, 1])], undefined);
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
    generateText(model, { ...plannedFields(plan), maxTokens: 3 });
    expect(engine.requests.at(-1)).toMatchObject({
      promptTokens: Int32Array.of(1, 105, 106, 2),
      imageGrids: [[1, 1, 2]],
      promptEmbeddings: [Float32Array.of(5, 6), Float32Array.of(7, 8)],
    });
  });

  it('is refused by a model that reads text alone, and not seen where it is too long', async () => {
    const blind = modelOf({ sight: null }).model;
    await expect(planChat(blind, { messages, pictures: [picture(5, [1, 2])] })).rejects.toThrow(
      "'messages' has a picture, which is not taken: the model reads text alone.",
    );
    const short = modelOf({ maxInputLen: 3 }).model;
    const unseen = { ...picture(5, [1, 2]), rows: () => Promise.reject(new Error('seen')) };
    const plan = await planChat(short, { messages, pictures: [unseen] });
    expect(() => generateText(short, { ...plannedFields(plan), maxTokens: 1 })).toThrow(
      /4 tokens, of 3 at most/,
    );
  });
});
