import { afterAll, describe, expect, it } from 'vitest';
import { readGolden } from '../../tools/support/goldens.js';
import {
  BEST_INSTRUCTION_SET,
  openExecutor,
  TestEngines,
  tinyModelPath,
} from '../../tools/support/test-engine.js';
import { instructionSets } from '../support/native-options.js';
import { describeWithTestModel, testModelPath } from '../support/test-model.js';
import { type BeamGolden, compareBeams, MAX_BEAM_WIDTH } from './beam-goldens.js';

const goldens = readGolden<BeamGolden>('beams');
const engines = new TestEngines();
afterAll(() => engines.remove());

describe.each(['tiny-gqa', 'tiny-bias'])('beam search of %s', (model) => {
  const cases = goldens.filter((golden) => golden.model === model);

  it('has goldens of every kind', () => {
    expect(new Set(cases.map(({ width }) => width))).toEqual(new Set([2, 3, 4, 5, 8]));
    expect(new Set(cases.map(({ earlyStopping }) => earlyStopping))).toEqual(new Set([true, false, 'never']));
    const isEarly = ({ beams, maxNewTokens }: BeamGolden) => beams.some((beam) => beam.length < maxNewTokens);
    expect(cases.filter(isEarly).length).toBeGreaterThan(cases.length / 3);
  });

  it.each(instructionSets)('on %s is that of Hugging Face transformers', async (instructionSet) => {
    const engine = await engines.get(tinyModelPath(model.slice('tiny-'.length)), 'f32');
    const executor = openExecutor(engine, {
      instructionSet,
      maxLogitRows: 4 * MAX_BEAM_WIDTH,
      maxNumSequences: 4 * MAX_BEAM_WIDTH,
      maxSeqLen: 80,
      tokensPerBlock: 16,
      numBlocks: 120,
    });
    // Searches are the same code on each set: all on the best one, some of every kind on another.
    const own = instructionSet === BEST_INSTRUCTION_SET ? cases : cases.filter((_, i) => i % 7 === 0);
    compareBeams(executor, engine.manifest.config, own);
    executor.close();
  });
});

describeWithTestModel('beam search of SmolLM2', () => {
  it('is that of Hugging Face transformers', async () => {
    const engine = await engines.get(testModelPath!, 'f32');
    const executor = openExecutor(engine, {
      threads: 2,
      maxLogitRows: MAX_BEAM_WIDTH,
      maxNumSequences: MAX_BEAM_WIDTH,
      maxSeqLen: 96,
      numBlocks: 20,
    });
    compareBeams(executor, engine.manifest.config, readGolden<BeamGolden>('beams-smollm2'));
    executor.close();
  });
});
