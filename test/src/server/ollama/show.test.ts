import { describe, expect, it } from 'vitest';
import { showAnswer } from '../../../../src/server/ollama/show.js';
import { readModelFacts } from '../../../../src/serving/model-facts.js';
import { tinyModelPath } from '../../../../tools/support/test-engine.js';

const infoOf = (model: string) => {
  const facts = readModelFacts(tinyModelPath(model));
  const shown = {
    name: 'toy',
    template: null,
    task: 'generate',
    sees: false,
    maxSeqLen: 256,
    modifiedMs: 0,
  } as const;
  return showAnswer({ ...shown, facts }).model_info;
};

describe("what Ollama's show tells of a model's files", () => {
  it('are its dimensions, by the names of its architecture', () => {
    const info = infoOf('qwen3');
    expect(info).toMatchObject({
      'general.architecture': 'qwen3',
      'qwen3.embedding_length': 48,
      'qwen3.block_count': 2,
    });
    expect(Object.keys(info).filter((key) => key.includes('expert'))).toEqual([]);
  });

  it('are its experts, where layers have some', () => {
    expect(infoOf('qwen3moe-gguf')).toMatchObject({
      'general.architecture': 'qwen3moe',
      'qwen3moe.expert_count': 8,
      'qwen3moe.expert_used_count': 2,
    });
  });
});
