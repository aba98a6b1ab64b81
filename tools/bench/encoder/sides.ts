import { llamaSide } from './llama-side.js';
import { nodeSide, pythonSide } from './process-side.js';
import type { Side } from './side.js';
import { skeinSide } from './skein-side.js';

/** Where the peers lie; '': left out. */
interface PeerPlaces {
  /** A Python with sentence-transformers on torch. */
  python: string;
  /** A Python with openvino and transformers. */
  openvino: string;
  /** A folder with node_modules. */
  node: string;
  /** llama.cpp's server. */
  'llama-server': string;
}

/** Skein, and the peers that are given. */
export function sidesOf(places: PeerPlaces, threads: number): Side[] {
  const { python, openvino, node, 'llama-server': server } = places;
  const given = (place: string, make: () => Side[]) => (place === '' ? [] : make());
  return [
    ...(['f32', 'bf16', 'int8'] as const).map((precision) => skeinSide(precision, threads)),
    ...given(python, () =>
      (['f32', 'bf16'] as const).map((precision) => pythonSide(python, 'torch', precision, threads)),
    ),
    ...given(openvino, () =>
      (['f32', 'bf16'] as const).map((precision) => pythonSide(openvino, 'openvino', precision, threads)),
    ),
    ...given(node, () => [
      nodeSide(node, 'onnxruntime-node', 'f32', threads),
      nodeSide(node, 'onnxruntime-node', 'int8', threads),
      nodeSide(node, 'transformers.js', 'f32', threads),
    ]),
    ...given(server, () => (['F32', 'Q8_0'] as const).map((type) => llamaSide(server, type, threads))),
  ];
}
