import { describe, expect, it } from 'vitest';
import { attendsBothWays } from '../../../models/images/both-ways.js';

describe('a text model attends both ways within a picture', () => {
  it.each([
    [{ model_type: 'gemma3', text_config: {} }, true],
    [{ model_type: 'gemma4', text_config: { use_bidirectional_attention: 'vision' } }, true],
    [{ model_type: 'gemma4', text_config: { use_bidirectional_attention: null } }, false],
    [{ model_type: 'qwen3_vl', text_config: { use_bidirectional_attention: false } }, false],
    [{ model_type: 'smolvlm' }, false],
  ])('%j: %s', (config, expected) => {
    expect(attendsBothWays({ config })).toBe(expected);
  });
});
