import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { RECOMMENDED_NAMES } from '../../../callbacks/sampling-params.js';
import { findModelFiles } from '../../../models/checkpoints/model-files.js';
import { openCheckpoint, readRecommendedSampling } from '../../../models/checkpoints/open-checkpoint.js';
import type { RecommendedSampling } from '../../../models/checkpoints/recommended-sampling.js';
import { checkedSampling } from '../../../src/generation/sampling-defaults.js';
import type { TypedValue } from '../../../tools/support/gguf-writer.js';
import { freshFolders } from '../../support/fresh-folders.js';
import { writeTinyGguf } from '../../support/tiny-checkpoint.js';

const fresh = freshFolders('skein-sampling');
const f32 = (value: number): TypedValue => ({ type: 'f32', value });
const i32 = (value: number): TypedValue => ({ type: 'i32', value });

/** What the files of a GGUF recommend. @param generation generation_config.json next to it */
function recommended(metadata: Record<string, TypedValue>, generation?: object): RecommendedSampling {
  const folder = fresh();
  writeTinyGguf(join(folder, 'tiny.gguf'), {
    metadata: Object.fromEntries(
      Object.entries(metadata).map(([key, value]) => [`general.sampling.${key}`, value]),
    ),
  });
  if (generation !== undefined)
    writeFileSync(join(folder, 'generation_config.json'), JSON.stringify(generation));
  const sampling = openCheckpoint(folder).recommended(RECOMMENDED_NAMES);
  expect(readRecommendedSampling(RECOMMENDED_NAMES, findModelFiles(folder))).toEqual(sampling);
  return sampling;
}

describe('the settings of sampling that a model recommends', () => {
  it('are those of generation_config.json, without what says nothing of them', () => {
    const file = {
      do_sample: false,
      temperature: 0.6,
      top_k: 20,
      top_p: null,
      repetition_penalty: 1.05,
      max_new_tokens: 2048,
      eos_token_id: [2],
    };
    const found = recommended({}, file);
    expect(checkedSampling(found)).toEqual({
      defaults: { temperature: 0.6, topK: 20, repetitionPenalty: 1.05, maxTokens: 2048 },
      leftOut: [],
    });
    expect(found.max_tokens).toEqual({
      value: 2048,
      from: 'generation_config.json',
      key: 'max_new_tokens',
    });
  });

  it('are those of a GGUF before those of the file beside it, each by itself', () => {
    const found = recommended(
      { temp: f32(0.7), top_p: f32(0.95), penalty_last_n: i32(64), mirostat: i32(0), sequence: f32(1) },
      { temperature: 0.6, min_p: 0.05 },
    );
    expect(checkedSampling(found).defaults).toEqual({
      temperature: 0.7,
      // As it was written, and not as a float32 shows it.
      topP: 0.95,
      minP: 0.05,
      penaltyLastN: 64,
      mirostat: 0,
    });
    expect(found.temperature!.from).toBe('GGUF');
    expect(found.min_p!.from).toBe('generation_config.json');
  });

  it('are none where the files have none', () => {
    expect(recommended({})).toEqual({});
    expect(recommended({}, { eos_token_id: 2 })).toEqual({});
  });

  it('are left out with a sentence each where no request could have them', () => {
    const file = { temperature: -1, top_k: -1, top_p: '0.9', min_p: { a: 1 }, max_new_tokens: 0.5 };
    const { defaults, leftOut } = checkedSampling(recommended({ penalty_repeat: f32(0) }, file));
    // -1 is a way to write "off".
    expect(defaults).toEqual({ topK: 0 });
    expect(leftOut).toEqual([
      'generation_config.json recommends temperature -1, which should be a number from 0 to 100; it is left out.',
      'generation_config.json recommends top_p "0.9", which should be a number from 0 to 1; it is left out.',
      'generation_config.json recommends min_p {"a":1}, which should be a number from 0 to 1; it is left out.',
      'GGUF recommends general.sampling.penalty_repeat 0, which should be a number from 0.0078125 to 100; it is left out.',
      'generation_config.json recommends max_new_tokens 0.5, which should be a whole number of at least 1; it is left out.',
    ]);
  });

  it('show no more of a value that is none than fits a line', () => {
    const { leftOut } = checkedSampling(recommended({}, { temperature: 'x'.repeat(100_000) }));
    expect(leftOut[0]!.length).toBeLessThan(250);
  });

  it('of an engine.json that somebody has edited are read as far as they are some', () => {
    const odd = { temperature: null, top_k: 7, top_p: { value: 0.5, from: 'GGUF', key: 'x' }, other: {} };
    expect(checkedSampling(odd as unknown as RecommendedSampling).defaults).toEqual({ topP: 0.5 });
  });
});
