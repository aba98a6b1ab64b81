import { expect, it } from 'vitest';
import { checkCache } from '../../../models/repository/check-config.js';
import type { ModelConfig } from '../../../models/repository/model-config.js';

const check = (fields: Partial<ModelConfig>, enable = true) =>
  checkCache(
    {
      name: 'm',
      response_cache: { enable },
      model_transaction_policy: { decoupled: false },
      ...fields,
    } as ModelConfig,
    (path, rest) => {
      throw new Error(`${path.join('.')} ${rest}`);
    },
  );

it('models whose answers do not follow from one request keep none, in the words of Triton', () => {
  const decoupled = { model_transaction_policy: { decoupled: true } };
  expect(() => check(decoupled)).toThrow(
    "response_cache is enabled: Response Cache does not currently support model m with 'decoupled' transaction policy. Please disable the response cache.",
  );
  expect(() => check({ sequence_batching: {} as never })).toThrow('m with sequence batching scheduler.');
  expect(() => check({})).not.toThrow();
  expect(() => check(decoupled, false)).not.toThrow();
});
