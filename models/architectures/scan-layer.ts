import type { ValueRef } from '../../network/network-builder.js';
import type { ModelConfig } from '../model-config.js';
import type { DecoderParts } from './decoder-parts.js';

/** Columns of the projection into a scan: | gate | x of all heads | B of all groups | C of all groups | steps | */
function scanColumns({
  scan,
}: Pick<ModelConfig, 'scan'>): [gate: number, x: number, b: number, c: number, steps: number] {
  const { heads, headDim, groups, stateDim } = scan!;
  const values = heads * headDim;
  return [values, values, groups * stateDim, groups * stateDim, heads];
}

/** Name of the weights that norm a group of a scan's output, after the layer's name. */
export function scanNorm(group: number, groups: number): string {
  return groups === 1 ? 'mamba.norm.weight' : `mamba.norm.${group}.weight`;
}

/**
 * sum += out(scan(x)): the mixer of Mamba2. One projection has all that the scan takes; x, B and C pass a short convolution; what the scan
 * gives is gated, and normed group by group.
 *
 * @param epsilon of the norm
 */
export function addScan(
  parts: DecoderParts,
  config: ModelConfig,
  sum: ValueRef,
  x: ValueRef,
  layer: number,
  epsilon: number,
): void {
  const { net } = parts;
  const { scan, multipliers } = config;
  const { heads, headDim, groups, stateDim, biased, norm, leastStep, mostStep, rates } = scan!;
  const widths = scanColumns(config);
  const [values] = widths;
  const all = widths.reduce((one, other) => one + other);
  const both = net.linear(
    x,
    parts.projection(layer, 'scanInput', x.width, biased.input, [['mamba.in_proj', all]]),
  );
  let first = 0;
  for (const [part, columns] of widths.entries()) {
    net.scale(both, multipliers?.scanIn[part] ?? 1, first, columns);
    first += columns;
  }
  const mixed = parts.shortConv(both, layer, {
    source: 'mamba.conv1d',
    first: values,
    columns: all - values - heads,
    taps: config.shortConv!.taps,
    biased: config.shortConv!.biased,
    activation: 'silu',
  });
  const vector = (name: string, source: string, columns: number) =>
    net.vector(`layers.${layer}.${name}`, [{ name: `model.layers.${layer}.${source}`, columns }]);
  const y = net.selectiveScan(mixed, both, all - heads, {
    decay: vector('scanDecay', 'mamba.A_log', heads),
    stepBias: vector('scanStepBias', 'mamba.dt_bias', heads),
    skip: vector('scanSkip', 'mamba.D', heads),
    ...(rates && { rates }),
    heads,
    headDim,
    groups,
    stateDim,
    leastStep,
    mostStep,
  });
  const addNorms = () => {
    const width = values / groups;
    for (let group = 0; group < groups; group++) {
      const scales = vector(`scanNorm.${group}`, scanNorm(group, groups), width);
      net.rmsNormColumns(y, group * width, scales, epsilon);
    }
  };
  if (norm === 'beforeGate') addNorms();
  net.gate(y, both, values, { activation: 'silu' });
  if (norm === 'behindGate') addNorms();
  net.scale(y, multipliers?.scanOut ?? 1);
  const out: [string, number][] = [['mamba.out_proj', sum.width]];
  net.addLinear(sum, y, parts.projection(layer, 'scanOutput', values, biased.output, out));
}
