import { expect, test } from 'vitest';
import type { GptManagerOptions } from '../../../callbacks/gpt-manager-options.js';
import { parseGroupAddress } from '../../../callbacks/group-address.js';
import { checkRanks } from '../../../engine/options/check-ranks.js';

const PLACE = { rank: 1, size: 2, address: '/run/skein.sock' };
const check = (ranks: object, optionalParams: object = {}) =>
  checkRanks({ ranks, optionalParams } as unknown as GptManagerOptions);

test('a place in a group is taken', () => {
  check(PLACE);
  check({ ...PLACE, address: 'host:7000', secret: '0123456789abcdef', requests: 'everyRank' });
  check({ ...PLACE, size: 4 }, { tensorParallelSize: 2, pipelineParallelSize: 2 });
});

test.each([
  [{ ...PLACE, size: 1 }, {}, 'ranks.size is 1'],
  [{ ...PLACE, rank: 2 }, {}, 'of 2 ranks it must be from 0 to 1'],
  [{ ...PLACE, address: 'host:7000' }, {}, 'ranks.secret is missing'],
  [{ ...PLACE, secret: 'short' }, {}, 'at least 16 characters'],
  [{ ...PLACE, requests: 'all' }, {}, 'must be rank0 or everyRank'],
  [{ ...PLACE, place: 3 }, {}, 'has no field "place"'],
  [PLACE, { tensorParallelSize: 3 }, 'ranks.size is 2, but tensorParallelSize x pipelineParallelSize is 3'],
])('%j with %j is refused', (ranks, params, message) => {
  expect(() => check(ranks, params)).toThrow(message);
});

test('addresses are paths or host:port', () => {
  expect(parseGroupAddress('./group.sock')).toEqual({ path: './group.sock' });
  expect(parseGroupAddress('rank0.local:7000')).toEqual({ host: 'rank0.local', port: 7000 });
  expect(parseGroupAddress('[::1]:7000')).toEqual({ host: '::1', port: 7000 });
  expect(() => parseGroupAddress('rank0.local')).toThrow('must be a path with a /');
  expect(() => parseGroupAddress('rank0.local:70000')).toThrow('must be a path with a /');
});
