import { describe, expect, it } from 'vitest';
import {
  BatcherLimitError,
  type ConfiguredBatching,
  modelBatcher,
  sequenceBatcher,
  serviceBatcher,
  softBatcher,
} from '../../../scheduler/tensors/batcher-presets.js';
import { type Arrival, timeline } from '../../support/batch-timeline.js';

const ones = (atMs: number, names: string): Arrival[] => names.split('').map((name): Arrival => [atMs, name]);

describe('the soft batcher', () => {
  const soft = softBatcher({ batchSize: 4, timeoutUs: 100_000 });

  it('sends a full batch at once and a part of one at its timeout, from its first request on', () => {
    const arrivals: Arrival[] = [...ones(0, 'ABCDE'), [60, 'F'], [99, 'G'], [101, 'H']];
    expect(timeline(soft, arrivals)).toEqual(['0 A B C D', '100 E F G', '201 H']);
  });

  it('goes on filling while nobody is free', () => {
    const arrivals: Arrival[] = [...ones(0, 'AB'), [150, 'C'], [160, 'D'], [170, 'E']];
    expect(timeline(soft, arrivals, { fromMs: 300 })).toEqual(['300 A B C D', '300 E']);
  });
});

describe('the hard batcher', () => {
  const hard = softBatcher({ batchSize: 4, timeoutUs: Number.POSITIVE_INFINITY });

  it('sends full batches only', () => {
    expect(timeline(hard, [...ones(0, 'AB'), ...ones(1e9, 'CDE')])).toEqual(['1000000000 A B C D']);
  });

  it('cuts no request: one that does not fit sends what is before it', () => {
    const arrivals: Arrival[] = [
      [0, 'A', 3],
      [5, 'B', 2],
      [9, 'C', 2],
    ];
    expect(timeline(hard, arrivals)).toEqual(['5 A', '9 B C']);
  });
});

describe('a batched service', () => {
  it('waits 0.1 s and has 32 batches under way, where nothing else is said', () => {
    const { batcher, batchesAhead } = serviceBatcher({ maxBatchSize: 200 });
    expect(batcher).toEqual(softBatcher({ batchSize: 200, timeoutUs: 100_000 }));
    expect(batchesAhead).toBe(32);
  });

  it('takes its limits as they are allowed', () => {
    for (const maxBatchSize of [1, 10_000]) expect(serviceBatcher({ maxBatchSize }).batcher).toBeDefined();
    for (const timeoutSeconds of [1e-6, 1]) {
      const { maxDelayUs } = serviceBatcher({ maxBatchSize: 1, timeoutSeconds }).batcher;
      expect(maxDelayUs).toBe(timeoutSeconds * 1e6);
    }
    for (const maxQueueSize of [1, 128])
      expect(serviceBatcher({ maxBatchSize: 1, maxQueueSize }).batchesAhead).toBe(maxQueueSize);
  });

  it.each([
    [
      { maxBatchSize: 0 },
      'maxBatchSize of a batched service is 0; it must be a whole number from 1 to 10000.',
    ],
    [{ maxBatchSize: 10_001 }, /maxBatchSize .* is 10001; it must be/],
    [{ maxBatchSize: 1.5 }, /maxBatchSize .* is 1\.5; it must be a whole number/],
    [
      { maxBatchSize: 1, timeoutSeconds: 0 },
      'timeoutSeconds of a batched service is 0; it must be a number above 0 and at most 1.',
    ],
    [{ maxBatchSize: 1, timeoutSeconds: 1.01 }, /timeoutSeconds .* is 1\.01; it must be/],
    [{ maxBatchSize: 1, timeoutSeconds: Number.NaN }, /timeoutSeconds .* is NaN; it must be/],
    [
      { maxBatchSize: 1, maxQueueSize: 0 },
      'maxQueueSize of a batched service is 0; it must be a whole number from 1 to 128.',
    ],
    [{ maxBatchSize: 1, maxQueueSize: 129 }, /maxQueueSize .* is 129; it must be/],
    [{ maxBatchSize: '8' as unknown as number }, /maxBatchSize .* is "8"; it must be a whole number/],
  ])('%o is refused with one sentence', (limits, message) => {
    expect(() => serviceBatcher(limits)).toThrow(BatcherLimitError);
    expect(() => serviceBatcher(limits)).toThrow(message);
  });

  it('fills the batch that waits while the pipeline is full, and sends it as soon as that has room', () => {
    const { batcher, batchesAhead } = serviceBatcher({
      maxBatchSize: 4,
      timeoutSeconds: 0.1,
      maxQueueSize: 1,
    });
    const arrivals: Arrival[] = [...ones(0, 'ABCD'), ...ones(10, 'EF'), [150, 'G'], ...ones(290, 'HI')];
    const pipeline = { count: batchesAhead, computeMs: 300 };
    expect(timeline(batcher, arrivals, pipeline)).toEqual(['0 A B C D', '300 E F G H', '600 I']);
  });
});

describe("a model's configuration", () => {
  const policy = {
    timeout_action: 'REJECT',
    default_timeout_microseconds: 0,
    allow_timeout_override: false,
    max_queue_size: 0,
  } as const;
  const dynamic: NonNullable<ConfiguredBatching['dynamic_batching']> = {
    preferred_batch_size: [],
    max_queue_delay_microseconds: 0,
    priority_levels: 0,
    default_priority_level: 0,
    default_queue_policy: policy,
    priority_queue_policy: {},
  };

  it('without dynamic batching: every request alone', () => {
    const arrivals: Arrival[] = [
      [0, 'A', 3],
      [0, 'B', 1],
    ];
    expect(timeline(modelBatcher({ max_batch_size: 8 }), arrivals, { fromMs: 1 })).toEqual(['1 A', '1 B']);
    const unbatched = modelBatcher({ max_batch_size: 0, dynamic_batching: dynamic });
    expect(timeline(unbatched, arrivals, { fromMs: 1 })).toEqual(['1 A', '1 B']);
  });

  it('with an empty dynamic_batching: whatever waits', () => {
    const batcher = modelBatcher({ max_batch_size: 4, dynamic_batching: dynamic });
    expect(timeline(batcher, ones(0, 'ABCDEF'), { fromMs: 1 })).toEqual(['1 A B C D', '1 E F']);
  });

  it('with everything: each field is where it belongs', () => {
    const own = { timeout_action: 'DELAY', default_timeout_microseconds: 7, max_queue_size: 5 } as const;
    const batcher = modelBatcher({
      max_batch_size: 8,
      dynamic_batching: {
        preferred_batch_size: [4, 8],
        max_queue_delay_microseconds: 100,
        priority_levels: 3,
        default_priority_level: 2,
        default_queue_policy: { ...policy, max_queue_size: 9 },
        priority_queue_policy: { '3': { ...own, allow_timeout_override: true } },
      },
    });
    expect(batcher).toEqual({
      maxBatchSize: 8,
      oneByOne: false,
      preferred: [4, 8],
      maxDelayUs: 100,
      levels: {
        count: 3,
        default: 2,
        defaultPolicy: {
          timeoutAction: 'REJECT',
          timeoutUs: 0,
          allowTimeoutOverride: false,
          maxQueueSize: 9,
        },
        policies: new Map([
          [3, { timeoutAction: 'DELAY', timeoutUs: 7, allowTimeoutOverride: true, maxQueueSize: 5 }],
        ]),
      },
    });
  });
});

describe('the sequence batcher of a configuration', () => {
  const batching = { max_sequence_idle_microseconds: 1_000_000 };

  it('is direct where nothing else is said: a slot for each row of a batch', () => {
    const config = sequenceBatcher({ max_batch_size: 4, sequence_batching: batching }, 2);
    const strategy = { kind: 'direct', maxBatchSize: 4, minimumUtilization: 0, maxDelayUs: 0 };
    expect(config).toEqual({ instances: 2, slots: 4, maxIdleUs: 1_000_000, strategy });
  });

  it('has one slot where the model takes no batches', () => {
    expect(sequenceBatcher({ max_batch_size: 0, sequence_batching: batching }, 1).slots).toBe(1);
  });

  it('has as many candidates as are said, or as a batch has rows', () => {
    const oldest = {
      max_candidate_sequences: 9,
      preferred_batch_size: [2],
      max_queue_delay_microseconds: 5,
    };
    const of = (max_candidate_sequences: number) =>
      sequenceBatcher(
        {
          max_batch_size: 4,
          sequence_batching: { ...batching, oldest: { ...oldest, max_candidate_sequences } },
        },
        1,
      );
    expect(of(9)).toMatchObject({ slots: 9, strategy: { kind: 'oldest', preferred: [2], maxDelayUs: 5 } });
    expect(of(0).slots).toBe(4);
  });
});
