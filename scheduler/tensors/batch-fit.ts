/** What is asked of a model's input, in the words of its configuration. */
export interface FitInput {
  readonly name: string;
  /** Without the batch dimension; -1: any size. */
  readonly dims: readonly number[];
  readonly allow_ragged_batch: boolean;
  readonly optional: boolean;
  readonly is_shape_tensor: boolean;
}

/** A tensor of a request, as the fit reads it. */
export interface FitTensor {
  readonly name: string;
  /** The batch dimension first, where the model has one. */
  readonly shape: readonly number[];
  readonly data: Uint8Array;
}

/**
 * Says which requests can be rows of one batch: those for which it returns the same text.
 *
 *   model's inputs                      requests                                  texts
 *   A  FP32 [-1]    any size            A [2,16]  B [2,4]                          A16
 *   B  INT64 [4]    of one size         A [1,16]  B [1,4]  (with A: one batch)     A16
 *   R  FP32 [-1]    ragged              A [1,8]   B [1,4]                          A8
 *
 * Asked are inputs whose size is free, unless ragged ones are allowed in a batch; of inputs that may be missing, which are there;
 * and of shape tensors, which one batch has once, what they say. For a model without any of these the text is always ''.
 * @param isBatched the model takes batches: the first dimension of a tensor is not part of its size
 */
export function fitOf(
  inputs: readonly FitInput[],
  isBatched: boolean,
): (tensors: readonly FitTensor[]) => string {
  const hasOptional = inputs.some(({ optional }) => optional);
  const asked = inputs.filter((input) => hasOptional || input.is_shape_tensor || isFree(input));
  if (asked.length === 0) return () => '';
  const byName = new Map(asked.map((input) => [input.name, input]));
  const order = new Map(asked.map(({ name }, index) => [name, index]));
  return (tensors) => {
    const parts = new Array<string>(asked.length).fill('-');
    for (const tensor of tensors) {
      const input = byName.get(tensor.name);
      if (input !== undefined) parts[order.get(tensor.name)!] = partOf(input, tensor, isBatched);
    }
    return parts.join(';');
  };
}

function isFree({ dims, allow_ragged_batch }: FitInput): boolean {
  return !allow_ragged_batch && dims.some((size) => size < 0);
}

function partOf(input: FitInput, { shape, data }: FitTensor, isBatched: boolean): string {
  if (input.is_shape_tensor) return `${shape.join('x')}=${Buffer.from(data).toString('latin1')}`;
  if (!isFree(input)) return '';
  return shape.slice(isBatched ? 1 : 0).join('x');
}
