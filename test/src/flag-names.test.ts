import { describe, expect, it } from 'vitest';
import { flagName, OPTIONS } from '../../src/config-options.js';
import { withFlagNames } from '../../src/flag-names.js';

describe('withFlagNames', () => {
  it('names every option that is no word of English as its flag', () => {
    for (const name of Object.keys(OPTIONS).filter((option) => /[A-Z]/.test(option))) {
      expect(withFlagNames(`${name} is 5; raise ${name}.`)).toBe(
        `--${flagName(name)} is 5; raise --${flagName(name)}.`,
      );
    }
  });

  it.each([
    ['kvCacheConfig.maxTokens is 0.', '--max-tokens is 0.'],
    ['optionalParams.kvCacheConfig.maxTokens', '--max-tokens'],
    ['draftEnginePath is refused', '--draft-model is refused'],
    ['(maxNumTokens = 16)', '(--max-num-tokens = 16)'],
    ['/models/maxTokens/a: no such file.', '/models/maxTokens/a: no such file.'],
    ['/models/my-maxTokens: no such file.', '/models/my-maxTokens: no such file.'],
    ['maxTokens.bin: no such file.', 'maxTokens.bin: no such file.'],
    ['the model has 5 threads', 'the model has 5 threads'],
  ])('%s', (message, expected) => {
    expect(withFlagNames(message)).toBe(expected);
  });
});
