import { describe, expect, it } from 'vitest';
import { closestName, hintOf, namesAlike } from '../../base/did-you-mean.js';

describe('closestName', () => {
  it.each([
    ['temprature', 'temperature'],
    ['max_toknes', 'max_tokens'],
    ['Stop', 'stop'],
  ])('%s means %s', (typed, meant) => {
    expect(closestName(typed, ['stop', 'temperature', 'max_tokens'])).toBe(meant);
  });

  it('says nothing where nothing is near', () => {
    expect(closestName('banana', ['stop', 'temperature', 'max_tokens'])).toBeNull();
    expect(closestName('x'.repeat(100_000), ['stop'])).toBeNull();
  });
});

describe('namesAlike', () => {
  const known = ['--lora', '--lora-dir', '--max-loras', '--max-lora-rank', '--port', 'loraCacheBytes'];

  it('has those that share a word, the nearest first, and three at most', () => {
    expect(namesAlike('--fully-sharded-loras', known)).toEqual(['--max-loras', '--lora', '--lora-dir']);
    expect(namesAlike('cacheSize', known)).toEqual(['loraCacheBytes']);
    expect(namesAlike('--ports', known)).toEqual(['--port']);
    expect(namesAlike('--is-of-the', ['--of-the-is', '--it'])).toEqual(['--of-the-is']);
    expect(namesAlike('banana', known)).toEqual([]);
  });

  it('is told where none is close, and else where to look', () => {
    expect(hintOf('--lorra', known, 'HELP')).toBe('did you mean --lora?');
    expect(hintOf('--enable-lora-bias', known, 'HELP')).toBe(
      'there are --max-loras, --max-lora-rank, --lora-dir; see HELP.',
    );
    expect(hintOf('--banana', known, 'HELP')).toBe('see HELP.');
  });
});
