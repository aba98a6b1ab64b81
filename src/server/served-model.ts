import type { TextModel } from '../generation/text-model.js';

/** A model under the name that clients ask for. */
export interface ServedModel extends TextModel {
  id: string;
  /** Unix seconds. */
  created: number;
  /** Stable as long as the same build of the same model answers. */
  fingerprint: string;
  /** Most tokens of a chat answer whose request names no limit. */
  defaultMaxTokens: number;
}
