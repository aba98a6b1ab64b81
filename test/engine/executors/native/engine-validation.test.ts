import { truncateSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { chooseInstructionSet } from '../../../../engine/executors/native/instruction-set.js';
import { NativeExecutor } from '../../../../engine/executors/native/native-executor.js';
import type { NetworkPlan, PlanOp } from '../../../../network/plan.js';
import { makeTinyNetwork, type TinyNetwork } from '../../../../tools/support/tiny-network.js';
import { executorOptions } from '../../../support/native-options.js';

type Spoil = (plan: NetworkPlan, engine: TinyNetwork) => void;

function opOf<K extends PlanOp['op']>(plan: NetworkPlan, kind: K): Extract<PlanOp, { op: K }> {
  return plan.ops.find((op): op is Extract<PlanOp, { op: K }> => op.op === kind)!;
}

describe('an engine that does not fit together', () => {
  it.each<[string, Spoil, RegExp]>([
    [
      'an op nobody knows',
      (p) => {
        Object.assign(p.ops[1]!, { op: 'convolution' });
      },
      /ops\[1\]: op is "convolution", .*gatedLinear/,
    ],
    [
      'a value index beyond the values',
      (p) => {
        opOf(p, 'rmsNorm').input = 999;
      },
      /Op 1 \(rmsNorm\).*input names value 999/,
    ],
    [
      'a value read before it is written',
      (p) => {
        p.ops.shift();
      },
      /reads value 0 before any op writes it/,
    ],
    [
      'a slot used too early',
      (p) => {
        const norm = opOf(p, 'rmsNorm');
        p.values[opOf(p, 'linear').output]!.slot = p.values[norm.output]!.slot;
        p.slots[p.values[norm.output]!.slot]!.width = 999;
      },
      /share slot/,
    ],
    [
      'a weight nobody declares',
      (p) => {
        opOf(p, 'linear').weight = 'nothing';
      },
      /weight names nothing/,
    ],
    [
      'a weight of another shape',
      (p) => {
        opOf(p, 'linear').weight = 'layers.0.down';
      },
      /weight layers\.0\.down must be a matrix \[128 x 48\]/,
    ],
    [
      'a matrix where a vector belongs',
      (p) => {
        opOf(p, 'rmsNorm').weight = 'layers.0.o';
      },
      /must be a vector of 48/,
    ],
    [
      'a bias of another length',
      (p) => {
        opOf(p, 'linear').bias = 'layers.0.o.bias';
      },
      /bias layers\.0\.o\.bias must be a vector of 128/,
    ],
    [
      'a residual of another shape',
      (p) => {
        opOf(p, 'rmsNorm').residual = opOf(p, 'linear').output;
      },
      /\(rmsNorm\).*residual reads value/,
    ],
    [
      'a window of nothing',
      (p) => {
        opOf(p, 'attention').mask = { window: -3 };
      },
      /\(attention\).*window must be at least 1, but it is -3/,
    ],
    [
      'a cap that is no number',
      (p) => {
        opOf(p, 'attention').softCap = Number.NaN;
      },
      /softCap must be a number greater than 0/,
    ],
    [
      'scores without values for other heads',
      (p) => {
        opOf(p, 'attention').sinkLogits = 'norm';
      },
      /\(attention\).*sinkLogits norm must be a vector of 4, but it is a vector \[1 x 48\]/,
    ],
    [
      'a cap of 0',
      (p) => {
        p.ops.push({ op: 'softCap', value: p.logits, cap: 0 });
      },
      /\(softCap\).*cap must be a number greater than 0/,
    ],
    [
      'an xIELU of what is no number',
      (p) => {
        const numbers = { alphaPositive: 1, alphaNegative: Number.NaN, beta: 0, epsilon: 0 };
        p.ops.push({ op: 'xielu', value: p.logits, ...numbers });
      },
      /\(xielu\).*its numbers must be finite/,
    ],
    [
      'an xIELU that bends above 0',
      (p) => {
        const numbers = { alphaPositive: 1, alphaNegative: 1, beta: 0, epsilon: 1 };
        p.ops.push({ op: 'xielu', value: p.logits, ...numbers });
      },
      /\(xielu\).*epsilon must be at most 0/,
    ],
    [
      'norms of turned heads as wide as another value',
      (p) => {
        const { weight } = opOf(p, 'rmsNorm');
        opOf(p, 'ropeAndCache').norms = { query: weight, key: weight, epsilon: 0 };
      },
      /\(ropeAndCache\).*norms\.query .* must be a vector of 16/,
    ],
    [
      'weights that so many heads cannot share',
      (p) => {
        const { input, weight } = opOf(p, 'rmsNorm');
        p.ops.splice(2, 0, { op: 'layerNormHeads', value: input, first: 0, heads: 5, weight, epsilon: 0 });
      },
      /\(layerNormHeads\).*has 48 entries for 5 heads/,
    ],
    [
      'heads with weights of their own beyond the value',
      (p) => {
        const { input, weight } = opOf(p, 'rmsNorm');
        p.ops.splice(2, 0, { op: 'layerNormHeads', value: input, first: 1, heads: 3, weight, epsilon: 0 });
      },
      /\(layerNormHeads\).*48 columns from column 1 on must lie in value 0/,
    ],
    [
      'heads beyond the value',
      (p) => {
        const { input, weight } = opOf(p, 'rmsNorm');
        p.ops.splice(2, 0, { op: 'rmsNormHeads', value: input, first: 1, heads: 1, weight, epsilon: 0 });
      },
      /\(rmsNormHeads\).*1 heads of 48 from column 1 on must lie in value 0/,
    ],
    [
      'a RoPE table that is not there',
      (p) => {
        opOf(p, 'ropeAndCache').table = 0;
      },
      /table names RoPE table 0, but the plan has 0/,
    ],
    [
      'a RoPE table that turns more than a head',
      (p) => {
        p.attention.ropeTables = [new Array(9).fill(1)];
        opOf(p, 'ropeAndCache').table = 0;
      },
      /\(ropeAndCache\).*rotates 18 columns of heads that have 16/,
    ],
    [
      'queries alone beside keys',
      (p) => {
        opOf(p, 'ropeAndCache').queriesOnly = true;
      },
      /\(ropeAndCache\).*qkv must be \[tokens x 64\]/,
    ],
    [
      'heads of fewer layers than there are',
      (p) => {
        p.attention.layerHeads = [4];
      },
      /The plan has 2 caches, but 2 layers that keep something, and heads of 1 layers/,
    ],
    [
      'RoPE tables that are none',
      (p) => {
        Object.assign(p.attention, { ropeTables: [['a']] });
      },
      /ropeTables must be a list of lists of numbers/,
    ],
    [
      'a layer too many',
      (p) => {
        opOf(p, 'ropeAndCache').layer = 2;
      },
      /layer 2 is not one of the 2 layers/,
    ],
    [
      'attention before its cache',
      (p) => {
        opOf(p, 'attention').layer = 1;
      },
      /layer 1 is attended to before/,
    ],
    [
      'a row per token behind the selection',
      (p) => {
        const embedding = p.ops.find(({ op }) => op === 'embedding')!;
        p.ops.push(embedding);
      },
      /embedding.* has a row per token, but rows have been selected before/,
    ],
    [
      'a value wider than its slot',
      (p) => {
        p.values[0]!.width = 4096;
      },
      /does not fit into its slot/,
    ],
    [
      'a slot that does not exist',
      (p) => {
        p.values[0]!.slot = 77;
      },
      /slot 77/,
    ],
    [
      'a slot without width that no value lives in',
      (p) => {
        p.slots.unshift({ rows: 'tokens', width: -4096 });
        for (const value of p.values) value.slot++;
      },
      /Slot 0 of the plan has width -4096/,
    ],
    [
      'slots that no address could count together',
      (p) => {
        for (let i = 0; i < 80; i++) p.slots.push({ rows: 'tokens', width: 2 ** 31 - 1 });
      },
      /brings the workspace to \d+ values; at most/,
    ],
    [
      'logits of another width',
      (p) => {
        p.logits = 0;
      },
      /logits must be/,
    ],
    [
      'heads that do not group',
      (p) => {
        for (const cache of p.caches) cache.kvHeads = 3;
      },
      /multiple of numKvHeads/,
    ],
    [
      'an odd rotary width',
      (p) => {
        p.attention.rotaryDim = 3;
      },
      /rotaryDim must be even/,
    ],
    [
      'a tensor that is missing',
      (_, e) => {
        e.tensors.splice(2, 1);
      },
      /has no tensor layers\.0\.qkv,/,
    ],
    [
      'a tensor of another shape',
      (_, e) => {
        e.tensors[0]!.rows = 130;
      },
      /tensor embedding is \[130 x 48\], .* \[131 x 48\]/,
    ],
    [
      'a tensor of another size',
      (_, e) => {
        e.tensors[0]!.byteLength = 4;
      },
      /tensor embedding takes 25152 bytes/,
    ],
    [
      'a tensor beyond the file',
      (_, e) => {
        e.tensors[0]!.offset = 64 * 100000;
      },
      /tensor embedding must lie within the file/,
    ],
    [
      'a vector in bf16',
      (_, e) => {
        e.tensors[1]!.dtype = 'bf16';
      },
      /is a vector and must be f32/,
    ],
    [
      'a weights file that was cut',
      (_, e) => {
        truncateSync(e.weightsFile, 1000);
      },
      /must lie within the file/,
    ],
    [
      'no weights file',
      (_, e) => {
        e.weightsFile += '.gone';
      },
      /weights\.bin\.gone cannot be opened/,
    ],
  ])('%s', (_, spoil, message) => {
    const engine = makeTinyNetwork({ bias: true });
    spoil(engine.plan, engine);
    expect(() => new NativeExecutor(engine, executorOptions())).toThrow(message);
    engine.remove();
  });

  it.each<[string, Spoil, RegExp]>([
    [
      'a gate beyond its value',
      (p) => {
        opOf(p, 'gate').first = 110;
      },
      /\(gate\).*value: 64 columns from column 110 on do not lie in/,
    ],
    [
      'a gate beyond its factors',
      (p) => {
        opOf(p, 'gate').byFirst = -1;
      },
      /\(gate\).*by: 64 columns from column -1 on do not lie in/,
    ],
    [
      'a gate of no columns',
      (p) => {
        opOf(p, 'gate').columns = 0;
      },
      /\(gate\).*value: 0 columns/,
    ],
    [
      'a gate of columns by themselves',
      (p) => {
        opOf(p, 'gate').byFirst = 1;
      },
      /\(gate\).*columns cannot be changed by columns among them/,
    ],
    [
      'a gate of other rows',
      (p) => {
        const value = opOf(p, 'selectRows').input;
        const gate = { value, first: 0, columns: 48, by: p.logits, byFirst: 0 };
        p.ops.push({ op: 'gate', ...gate, activation: 'none' });
      },
      /\(gate\).*the value and its factors must have as many rows/,
    ],
    [
      'a state that is not there',
      (p) => {
        opOf(p, 'shortConv').state = 4;
      },
      /\(shortConv\).*state names state 4, but the plan has 4/,
    ],
    [
      'a state of two ops',
      (p) => {
        p.ops.findLast((op) => op.op === 'shortConv')!.state = 0;
      },
      /\(shortConv\).*state 0 is that of an op before/,
    ],
    [
      'a state of another size',
      (p) => {
        p.states![1]!.size = 241;
      },
      /\(gatedDelta\).*state 1 has 241 numbers, but 240 are needed/,
    ],
    [
      'a state of nothing',
      (p) => {
        p.states![1]!.size = 0;
      },
      /The size of a state must be between 1 and/,
    ],
    [
      'a convolution beyond its input',
      (p) => {
        opOf(p, 'shortConv').first = 65;
      },
      /\(shortConv\).*input: 64 columns from column 65 on do not lie in/,
    ],
    [
      'a convolution of one tap',
      (p) => {
        opOf(p, 'shortConv').taps = 1;
      },
      /\(shortConv\).*taps must be between 2 and 64, but it is 1/,
    ],
    [
      'a convolution of other taps than its weight',
      (p) => {
        opOf(p, 'shortConv').taps = 5;
      },
      /\(shortConv\).*weight layers\.0\.conv must be a vector of 320/,
    ],
    [
      'a convolution with a bias of another length',
      (p) => {
        opOf(p, 'shortConv').bias = 'layers.0.conv';
      },
      /\(shortConv\).*bias layers\.0\.conv must be a vector of 64/,
    ],
    [
      'heads of values that heads of keys cannot share',
      (p) => {
        opOf(p, 'gatedDelta').keyHeads = 3;
      },
      /\(gatedDelta\).*valueHeads must be a multiple of keyHeads, but they are 4 and 3/,
    ],
    [
      'heads of keys without width',
      (p) => {
        opOf(p, 'gatedDelta').keyDim = 0;
      },
      /\(gatedDelta\).*keyDim and valueDim must be between 1 and 1024/,
    ],
    [
      'heads that do not fill their value',
      (p) => {
        opOf(p, 'gatedDelta').valueDim = 11;
      },
      /\(gatedDelta\).*qkv must have the columns of all heads, but it is/,
    ],
    [
      'gates of other heads',
      (p) => {
        const op = opOf(p, 'gatedDelta');
        op.gates = op.qkv;
      },
      /\(gatedDelta\).*gates must have two columns for each head of values/,
    ],
    [
      'a decay of other heads',
      (p) => {
        opOf(p, 'gatedDelta').decay = 'layers.0.conv';
      },
      /\(gatedDelta\).*decay layers\.0\.conv must be a vector of 4/,
    ],
    [
      'a bias of the decay of other heads',
      (p) => {
        opOf(p, 'gatedDelta').decayBias = 'layers.0.conv';
      },
      /\(gatedDelta\).*decayBias layers\.0\.conv must be a vector of 4/,
    ],
    [
      'lengths that are no numbers',
      (p) => {
        opOf(p, 'gatedDelta').epsilon = Number.NaN;
      },
      /\(gatedDelta\).*epsilon must be a number of at least 0/,
    ],
  ])('%s', (_, spoil, message) => {
    const engine = makeTinyNetwork({ stateful: true });
    spoil(engine.plan, engine);
    expect(() => new NativeExecutor(engine, executorOptions({ numStateSlots: 2 }))).toThrow(message);
    engine.remove();
  });

  it.each<[string, Spoil, RegExp]>([
    [
      'heads of a scan that groups cannot share',
      (p) => {
        opOf(p, 'selectiveScan').groups = 4;
      },
      /\(selectiveScan\).*heads must be a multiple of groups and at most 4096, but they are 6 and 4/,
    ],
    [
      'heads of a scan without width',
      (p) => {
        opOf(p, 'selectiveScan').headDim = 0;
      },
      /\(selectiveScan\).*stateDim and headDim must be between 1 and 1024/,
    ],
    [
      'a scan whose heads do not fill their value',
      (p) => {
        opOf(p, 'selectiveScan').stateDim = 8;
      },
      /\(selectiveScan\).*input must have the columns of all heads and groups, but it is/,
    ],
    [
      'steps beyond their value',
      (p) => {
        opOf(p, 'selectiveScan').stepsFirst += 1;
      },
      /\(selectiveScan\).*steps: 6 columns from column 149 on do not lie in/,
    ],
    [
      'what a scan skips of other heads',
      (p) => {
        opOf(p, 'selectiveScan').skip = 'layers.0.scan.conv.bias';
      },
      /\(selectiveScan\).*skip layers\.0\.scan\.conv\.bias must be a vector of 6/,
    ],
    [
      'steps with limits that cross',
      (p) => {
        opOf(p, 'selectiveScan').leastStep = 0.5;
        opOf(p, 'selectiveScan').mostStep = 0.25;
      },
      /\(selectiveScan\).*leastStep must be a number of at least 0, and mostStep no less/,
    ],
    [
      'a state of a scan of another size',
      (p) => {
        p.states![1]!.size = 421;
      },
      /\(selectiveScan\).*state 1 has 421 numbers, but 420 are needed/,
    ],
    [
      'a scale beyond its value',
      (p) => {
        opOf(p, 'scale').first = 100;
      },
      /\(scale\).*value: 88 columns from column 100 on do not lie in/,
    ],
    [
      'a scale by no number',
      (p) => {
        opOf(p, 'scale').factor = Number.NaN;
      },
      /\(scale\).*factor must be a finite number/,
    ],
    [
      'a clamp beyond its value',
      (p) => {
        const scale = opOf(p, 'scale');
        const { value } = scale;
        p.ops.splice(p.ops.indexOf(scale), 0, {
          op: 'clamp',
          value,
          first: 100,
          columns: 88,
          least: 0,
          most: 1,
        });
      },
      /\(clamp\).*value: 88 columns from column 100 on do not lie in/,
    ],
    [
      'a clamp between no numbers',
      (p) => {
        const scale = opOf(p, 'scale');
        const { value, columns } = scale;
        p.ops.splice(p.ops.indexOf(scale), 0, { op: 'clamp', value, first: 0, columns, least: 2, most: 1 });
      },
      /\(clamp\).*least and most must be finite numbers, least no more than most/,
    ],
    [
      'attention without a cache',
      (p) => {
        p.ops.splice(1, 0, { op: 'ropeAndCache', qkv: opOf(p, 'embedding').output, layer: 0 });
      },
      /\(ropeAndCache\).*layer 0 is not one of the 0 layers/,
    ],
  ])('%s', (_, spoil, message) => {
    const engine = makeTinyNetwork({ scanned: 'alone' });
    spoil(engine.plan, engine);
    expect(() => new NativeExecutor(engine, executorOptions({ numStateSlots: 2 }))).toThrow(message);
    engine.remove();
  });

  it('states without a slot, or with too many', () => {
    const engine = makeTinyNetwork({ stateful: true });
    for (const slots of [{}, { numStateSlots: 0 }, { numStateSlots: -1 }, { numStateSlots: 2 ** 20 }])
      expect(() => new NativeExecutor(engine, executorOptions(slots))).toThrow(
        /numStateSlots must be between 1 and 1048575/,
      );
    engine.remove();
  });

  it.each<[Partial<Parameters<typeof executorOptions>[0]>, RegExp]>([
    [{ threads: 0 }, /threads must be between 1 and/],
    [{ tokensPerBlock: 24 }, /power of two/],
    [{ tokensPerBlock: 4 }, /tokensPerBlock must be between 8/],
    [{ maxNumTokens: 0 }, /maxNumTokens/],
    [{ numBlocks: 2 ** 27 }, /numBlocks x tokensPerBlock/],
    [{ numBlocks: 2 ** 30, tokensPerBlock: 8 }, /numBlocks x tokensPerBlock/],
  ])('options %o', (changes, message) => {
    const engine = makeTinyNetwork({ bias: true });
    expect(() => new NativeExecutor(engine, executorOptions(changes))).toThrow(message);
    engine.remove();
  });

  it('memory that the machine does not have: an error with the bytes', () => {
    const wide = makeTinyNetwork({ numHeads: 2, numKvHeads: 2, headDim: 512, numLayers: 8, hiddenSize: 8 });
    // 8 layers x 2^26 blocks x 16 tokens x 2 heads x 512 x 2 x 4 bytes = 64 TiB
    expect(() => new NativeExecutor(wide, executorOptions({ numBlocks: 2 ** 26 }))).toThrow(
      /The KV pool \(8 layers x 67108864 blocks of 16 tokens\) needs 70368744177664 bytes/,
    );
    wide.remove();
  });
});

describe('the instruction set', () => {
  it('is the fastest unless one is named', () => {
    expect(chooseInstructionSet(['scalar', 'avx2'], undefined, undefined)).toBe('avx2');
    expect(chooseInstructionSet(['scalar', 'avx2'], undefined, '')).toBe('avx2');
    expect(chooseInstructionSet(['scalar', 'avx2', 'avxvnni'], undefined, undefined)).toBe('avxvnni');
    expect(chooseInstructionSet(['scalar', 'avx2', 'avxvnni'], undefined, 'avx2')).toBe('avx2');
    expect(chooseInstructionSet(['avx2', 'avxvnni', 'avx512'], undefined, undefined)).toBe('avx512');
    expect(chooseInstructionSet(['scalar', 'avx2'], undefined, 'scalar')).toBe('scalar');
    expect(chooseInstructionSet(['scalar', 'avx2'], 'avx2', 'scalar')).toBe('avx2');
  });

  it('is that of tiles where the processor has them', () => {
    const supported = ['avx2', 'avx512bf16', 'amx'] as const;
    expect(chooseInstructionSet(supported, undefined, undefined)).toBe('amx');
    expect(chooseInstructionSet(supported, undefined, 'avx512bf16')).toBe('avx512bf16');
    expect(chooseInstructionSet(supported, 'avx512bf16', 'amx')).toBe('avx512bf16');
    expect(() => chooseInstructionSet(['avx2', 'avx512bf16'], undefined, 'amx')).toThrow(
      'SKEIN_ISA is "amx", but this machine runs avx2, avx512bf16; name one of them, or none for avx512bf16.',
    );
  });

  it('that is unknown, or not of this machine, is an error that lists what there is', () => {
    expect(() => chooseInstructionSet(['scalar', 'avx2'], undefined, 'avx512')).toThrow(
      'SKEIN_ISA is "avx512", but this machine runs scalar, avx2',
    );
    expect(() => chooseInstructionSet(['scalar'], 'avx2', undefined)).toThrow('instructionSet is "avx2"');
  });
});
