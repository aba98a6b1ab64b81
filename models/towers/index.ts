import type { NetworkPlan } from '../../network/plan.js';
import { clip } from './clip.js';
import { gemma4Vision } from './gemma4.js';
import { internVl } from './internvl.js';
import { pixtral } from './pixtral.js';
import { qwenVision } from './qwen-vision.js';
import { qwen2Vision } from './qwen2-vision.js';
import { siglip } from './siglip.js';
import type { TowerConfig, TowerKind } from './tower-config.js';

const TOWERS: Readonly<Record<TowerKind, (config: TowerConfig) => NetworkPlan>> = {
  siglip,
  clip,
  pixtral,
  internvl: internVl,
  gemma4: gemma4Vision,
  qwen2: qwen2Vision,
  'qwen2.5': qwen2Vision,
  qwen: qwenVision,
};

/** The network of a tower with its connector. The same config always gives the same plan. */
export function planTower(config: TowerConfig): NetworkPlan {
  return TOWERS[config.kind](config);
}
