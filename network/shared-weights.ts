import type { NetworkPlan, PackedProduct, PlanWeight } from './plan.js';
import { productsOf } from './products.js';

/**
 * A network with its head. Both plans list the weights of both, and their products in one order: so their executors map the same packed
 * file, and what both read, embedding and output layer, is in memory once.
 */
export function withHead(network: NetworkPlan, head: NetworkPlan): NetworkPlan {
  const weights = new Map<string, PlanWeight>();
  const packed = new Map<string, PackedProduct>();
  for (const plan of [network, head]) {
    for (const weight of plan.weights) weights.set(weight.name, weight);
    for (const op of plan.ops)
      for (const product of productsOf(op))
        packed.set(`${product.weight} ${product.gated}`, {
          ...product,
          ...(op.op === 'experts' && { isExpert: true }),
        });
  }
  const shared = { weights: [...weights.values()], packed: [...packed.values()] };
  return { ...network, ...shared, head: { ...head, ...shared } };
}
