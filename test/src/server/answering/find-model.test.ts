import { describe, expect, it } from 'vitest';
import { findEncoder, findGenerator, findModel } from '../../../../src/server/answering/find-model.js';
import { ModelState } from '../../../../src/serving/model-state.js';
import type { ServedEncoder } from '../../../../src/serving/served-model.js';
import { FakeEngine } from '../../support/fake-engine.js';
import { directoryOf, ToldStatistics } from '../../support/served-models.js';
import { toyModel } from '../../support/toy-server.js';

const chat = toyModel(new FakeEngine(() => []), { id: 'chat', aliases: ['gpt-4'] });
const code = toyModel(new FakeEngine(() => []), { id: 'code' });
const encoder = (id: string, kind: 'embedding' | 'score'): ServedEncoder => ({
  kind: 'encoder',
  id,
  aliases: [],
  created: 0,
  maxSeqLen: 512,
  state: new ModelState(),
  statistics: new ToldStatistics(() => ({ running: 0, waiting: 0 })),
  vocabSize: 100,
  outputWidth: kind === 'score' ? 1 : 8,
  head:
    kind === 'score'
      ? { kind, pooling: 'cls', layers: [], activation: 'none' }
      : {
          kind,
          pooling: 'mean',
          normalize: true,
          matryoshka: null,
          layers: [],
          prompts: {},
          defaultPrompt: null,
        },
  codec: { single: async () => [], pairs: async () => [], unweighted: new Set() },
  engine: { encode: async () => [] },
});
const vectors = encoder('vectors', 'embedding');
const scores = encoder('scores', 'score');

describe('the model of a request', () => {
  it('is found by its name or an alias, and without a name is the first', () => {
    const context = { models: directoryOf(vectors, chat, code) };
    expect(findModel(context, 'code')).toBe(code);
    expect(findModel(context, 'gpt-4')).toBe(chat);
    expect(findModel(context, undefined)).toBe(vectors);
    expect(() => findModel(context, 'gpt-5')).toThrow(
      "The model 'gpt-5' does not exist. This server serves 'vectors', 'chat', 'code'.",
    );
    const none = { models: directoryOf() };
    expect(() => findModel(none, undefined)).toThrow(/^This server serves no model now\.$/);
    expect(() => findModel(none, 'chat')).toThrow(
      "The model 'chat' does not exist. This server serves no model now.",
    );
  });

  it('is without a name one that somebody has, if there is one', () => {
    const [lost, there] = ['lost', 'there'].map((id) => toyModel(new FakeEngine(() => []), { id }));
    const context = { models: directoryOf(lost!, there!) };
    lost!.state.restart(new Error('it died'));
    expect(findGenerator(context, undefined)).toBe(lost);
    lost!.state.leave(new Error('nobody has it'));
    expect(findGenerator(context, undefined)).toBe(there);
    expect(findModel(context, undefined)).toBe(there);
    expect(findModel(context, 'lost')).toBe(lost);
    there!.state.leave(new Error('nobody has it'));
    expect(findGenerator(context, undefined)).toBe(lost);
    lost!.state.recover();
    expect(findGenerator(context, undefined)).toBe(lost);
  });

  it('is the first that generates, where text is asked for; one of another kind is refused', () => {
    const context = { models: directoryOf(vectors, chat, code) };
    expect(findGenerator(context, undefined)).toBe(chat);
    expect(findGenerator(context, 'code')).toBe(code);
    expect(() => findGenerator(context, 'vectors')).toThrow(
      "The model 'vectors' generates no text; 'chat', 'code' would.",
    );
    expect(() => findEncoder(context, 'chat', 'embedding')).toThrow(
      "The model 'chat' embeds no texts; 'vectors' would.",
    );
    expect(() => findGenerator({ models: directoryOf(vectors) }, undefined)).toThrow(
      'No model of this server generates text.',
    );
  });

  it('is the first encoder that can do it: all score, but only some embed', () => {
    const context = { models: directoryOf(chat, vectors, scores) };
    expect(findEncoder(context, undefined, 'embedding')).toBe(vectors);
    expect(findEncoder(context, undefined, 'score')).toBe(scores);
    expect(findEncoder(context, 'vectors', 'score')).toBe(vectors);
    expect(() => findEncoder(context, 'scores', 'embedding')).toThrow(
      "The model 'scores' embeds no texts; 'vectors' would.",
    );
    expect(() => findEncoder({ models: directoryOf(chat) }, undefined, 'embedding')).toThrow(
      'No model of this server embeds texts.',
    );
  });
});
