import type { NamedTensor } from '../callbacks/types.js';

/** Names of the tensors that have a part for each beam. */
const PER_BEAM = new Set([
  'output_ids',
  'sequence_length',
  'finish_reasons',
  'output_log_probs',
  'cum_log_probs',
  'top_token_ids',
  'top_log_probs',
  'generation_logits',
]);

/** Those of them that have values for each token. */
const PER_TOKEN = /^(output_log_probs|top_token_ids|top_log_probs|generation_logits)$/;

/** The response as a request with this beam alone would get it; tokens behind the beam's end are left out. */
export function tensorsOfBeam(outputs: readonly NamedTensor[], beam: number): NamedTensor[] {
  const byName = new Map(outputs.map((output) => [output.name, output]));
  // generation_logits that were not asked for are a dummy, of no beam.
  const isOfBeams = ({ name, shape }: NamedTensor) => PER_BEAM.has(name) && shape[1]! > 1;
  const own = outputs.map((output) => (isOfBeams(output) ? partOf(output, beam) : output));
  const ofTokens = outputs.filter((output) => PER_TOKEN.test(output.name) && isOfBeams(output));
  if (ofTokens.length > 0) {
    const numGenerated = generatedOf(byName, ofTokens[0]!.shape[2]!, beam);
    const names = new Set(ofTokens.map(({ name }) => name));
    for (const tensor of own) {
      if (!names.has(tensor.name)) continue;
      const width = tensor.shape[3] ?? 1;
      tensor.shape = [1, 1, numGenerated, ...tensor.shape.slice(3)];
      tensor.data = tensor.data.slice(0, numGenerated * width);
    }
  }
  return [...own, { name: 'beam', shape: [1], data: Int32Array.of(beam) }];
}

/** Number of tokens that a beam generated. @param most that of the longest beam, which its values tell */
function generatedOf(outputs: ReadonlyMap<string, NamedTensor>, most: number, beam: number): number {
  const lengths = outputs.get('sequence_length')!.data as Int32Array;
  const longest = Math.max(...lengths);
  return most - (longest - lengths[beam]!);
}

function partOf({ name, shape, data }: NamedTensor, beam: number): NamedTensor {
  const size = data.length / shape[1]!;
  return { name, shape: [1, 1, ...shape.slice(2)], data: data.slice(beam * size, (beam + 1) * size) };
}
