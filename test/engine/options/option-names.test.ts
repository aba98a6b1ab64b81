import { describe, expect, it } from 'vitest';
import type { GptManagerOptions } from '../../../callbacks/gpt-manager-options.js';
import { ParameterError } from '../../../callbacks/sampling-params.js';
import { checkManagerOptions } from '../../../engine/options/check-manager-options.js';

const right = {
  enginePath: './engine',
  modelType: 'InflightFusedBatching',
  maxBeamWidth: 1,
  schedulerPolicy: 'GUARANTEED_NO_EVICT',
  getInferenceRequests: () => [],
  sendResponse: () => {},
  optionalParams: { maxNumSequences: 4, kvCacheConfig: { maxTokens: 100 } },
} as const;

const check = (options: unknown) => () => checkManagerOptions(options as GptManagerOptions);

describe('options of GptManager', () => {
  it('are taken where they are known, absent ones and undefined ones too', () => {
    check(right)();
    check({ ...right, optionalParams: undefined, onError: undefined })();
    check({ ...right, optionalParams: { kvCacheConfig: undefined } })();
  });

  it("may be of an executor of one's own", () => {
    check({ ...right, optionalParams: { executorModule: 'file:///mine.mjs', myOption: 5 } })();
    expect(check({ ...right, optionalParams: { myOption: 5 } })).toThrow(ParameterError);
  });

  it.each<[string, object, RegExp]>([
    [
      'schedulerPolcy',
      { schedulerPolcy: 'x' },
      /^schedulerPolcy is not an option of GptManager; did you mean schedulerPolicy\?$/,
    ],
    [
      'optionalParams.maxNumSequnces',
      { optionalParams: { maxNumSequnces: 4 } },
      /^optionalParams\.maxNumSequnces is not an option of GptManager; did you mean maxNumSequences\?$/,
    ],
    [
      'optionalParams.kvCacheConfig.maxToken',
      { optionalParams: { kvCacheConfig: { maxToken: 4 } } },
      /did you mean maxTokens\?$/,
    ],
    ['banana', { banana: 1 }, /there are enginePath, modelType, .*onKvCacheEvents\.$/],
    ['constructor', { constructor: 1 }, /is not an option/],
    ['optionalParams', { optionalParams: 5 }, /^optionalParams must be an object; it was given 5\.$/],
    [
      'optionalParams.kvCacheConfig',
      { optionalParams: { kvCacheConfig: null } },
      /must be an object; it was given null\.$/,
    ],
  ])('that are none are refused by name: %s', (field, change, message) => {
    const attempt = check({ ...right, ...change });
    expect(attempt).toThrow(ParameterError);
    expect(attempt).toThrow(message);
    expect(attempt).toThrow(expect.objectContaining({ field }));
  });

  it('have to be given', () => {
    expect(check(undefined)).toThrow('GptManager needs an object of options; it was given undefined.');
  });
});
