import { Speculation } from '../../engine/speculation/speculation.js';

/** Counts what becomes of drafts. */
export class CountedSpeculation extends Speculation {
  drafted = 0;
  accepted = 0;

  override noteVerified(...verified: Parameters<Speculation['noteVerified']>): void {
    super.noteVerified(...verified);
    this.drafted += verified[1];
    this.accepted += verified[2];
  }

  /** Steps cost the same however many rows they have. */
  override noteStep(rows: number, contextTokens: number): void {
    super.noteStep(rows, contextTokens, 1);
  }
}
