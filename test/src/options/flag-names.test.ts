import { describe, expect, it } from 'vitest';
import { type NamedText, option, says, worded } from '../../../base/named-text.js';
import { withFlagNames, withPlainNames } from '../../../src/options/flag-names.js';
import { flagName, OPTION_NAMES } from '../../../src/options/table.js';

describe('withFlagNames', () => {
  it('names every option as its flag', () => {
    for (const name of OPTION_NAMES) {
      expect(withFlagNames(says`${option(name)} is 5; raise ${option(name)}.`)).toBe(
        `--${flagName(name)} is 5; raise --${flagName(name)}.`,
      );
    }
  });

  it.each<[NamedText, string]>([
    [says`${option('kvCacheConfig.maxTokens')} is 0.`, '--kv-cache-tokens is 0.'],
    [[option('optionalParams.kvCacheConfig.maxTokens')], '--kv-cache-tokens'],
    [says`${option('enableTrtOverlap')} is refused: with V1`, '--micro-batch-overlap is refused: with V1'],
    [says`${option('maxQueueSize')} is 0`, '--max-queued-requests is 0'],
    [says`${option('draftEnginePath')} is refused`, '--draft-model is refused'],
    [says`(${option('maxNumTokens')} = 16)`, '(--max-batch-tokens = 16)'],
    ['/models/maxTokens/a: no such file.', '/models/maxTokens/a: no such file.'],
    ['/models/my-maxTokens: no such file.', '/models/my-maxTokens: no such file.'],
    ['maxTokens.bin: no such file.', 'maxTokens.bin: no such file.'],
    ['the model has 5 threads', 'the model has 5 threads'],
    [says`${option('threads')} is refused`, '--threads is refused'],
    [says`${option('logitsPostProcessorModule')} has no flag`, 'logitsPostProcessorModule has no flag'],
  ])('%j', (text, expected) => {
    expect(withFlagNames(text)).toBe(expected);
  });
});

describe('withPlainNames', () => {
  it.each<[NamedText, string]>([
    [
      says`${option('kvCacheConfig.hostCacheSize')} is refused: without ${option('enableBlockReuse')}`,
      'kvCacheSwapBytes is refused: without prefixCaching',
    ],
    [
      says`${option('peftCacheManagerConfig.hostCacheSize')}, ${option('optionalParams.kvCacheConfig.hostCacheSize')}`,
      'loraCacheBytes, kvCacheSwapBytes',
    ],
    [says`${option('maxNumTokens')} = 16`, 'maxBatchTokens = 16'],
    [says`${option('kvCacheTokens')} is 0`, 'kvCacheTokens is 0'],
    ['/models/maxTokens/a: no such file.', '/models/maxTokens/a: no such file.'],
  ])('%j', (text, expected) => {
    expect(worded(withPlainNames(text))).toBe(expected);
  });
});
