import { afterAll, describe, expect, it } from 'vitest';
import { loadableEngine } from '../../../engine/building/engine.js';
import { executorOptions } from '../../support/native-options.js';
import { TestGroups } from '../../support/rank-groups.js';
import { flipInSource, panelsOf, promptBatch, SourceEngines } from '../../support/source-engines.js';

const engines = new SourceEngines();
afterAll(() => engines.remove());

describe('ranks of an engine whose matrices stay in a GGUF', () => {
  const groups = new TestGroups();
  afterAll(() => groups.close());

  it.each([
    ['tensor parallel', { tensorParallelSize: 2 }],
    ['pipeline parallel', { pipelineParallelSize: 2 }],
  ])('have their parts of the panels and the same answers, %s', async (_, shape) => {
    const [engine, whole] = [
      await engines.cached(engines.models()[1]![1]),
      await engines.complete(engines.models()[1]![1]),
    ];
    const answers: Float32Array[] = [];
    for (const one of [engine, whole]) {
      const { executor } = await groups.open(loadableEngine(one), shape, executorOptions());
      answers.push(executor.forward(promptBatch).slice());
      await groups.close();
    }
    expect(answers[0]).toEqual(answers[1]);
    const panels = panelsOf(whole);
    expect(panels.length).toBe(2);
    for (const [i, own] of panelsOf(engine).entries()) expect(own.equals(panels[i]!)).toBe(true);
  });

  it('refuse a matrix that has changed, of which a rank has only a part', async () => {
    const model = engines.copyOfModel();
    const engine = await engines.cached(model);
    flipInSource(model, engine.manifest.tensors.find(({ name }) => name.endsWith('attentionOutput'))!);
    const opened = groups.open(loadableEngine(engine), { tensorParallelSize: 2 }, executorOptions());
    await expect(opened).rejects.toThrow(/attentionOutput are not those that were built/);
  });
});
