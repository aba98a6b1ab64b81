import type { EncoderHead } from '../../models/encoder-config.js';

/** What a model is asked for. */
export type ModelTask = 'generate' | 'embed' | 'score' | 'classify';

const TASKS: Readonly<Record<EncoderHead['kind'], ModelTask>> = {
  embedding: 'embed',
  score: 'score',
  classification: 'classify',
};

/** The task of a model by the head of its encoder. @param head undefined: it is no encoder */
export function taskOf(head: EncoderHead | undefined): ModelTask {
  return head === undefined ? 'generate' : TASKS[head.kind];
}
