import { createMutation, createQuery } from '@tanstack/svelte-query';
import { api, at, body, type Place, type Schemas } from '../api/client';
import { keys } from './keys';

export type Plan = Schemas['SubscriptionBody']['plan'];

/** The plans that can be bought. */
export type BoughtPlan = NonNullable<Schemas['CheckoutBody']['planId']>;

/** Reads the subscription of a tenant. */
export function useSubscription(place: () => Place) {
  return createQuery(() => ({
    queryKey: [...keys.billing(place().tenant), 'subscription'],
    queryFn: () => body(api.GET('/api/v1/billing/subscription', { params: { header: at(place()) } })),
  }));
}

/** Reads the features of a tenant. */
export function useFeatures(place: () => Place) {
  return createQuery(() => ({
    queryKey: [...keys.billing(place().tenant), 'features'],
    queryFn: async () => {
      const call = { params: { header: at(place()) } };
      const [analytics, experiments, multivariate] = await Promise.all([
        body(api.GET('/api/v1/billing/features/analytics', call)),
        body(api.GET('/api/v1/billing/features/experiments/check', call)),
        body(api.GET('/api/v1/billing/features/multivariate/check', call)),
      ]);
      return { analytics, experiments, multivariate };
    },
  }));
}

/** Opens the payment provider's page to buy or change a plan. It leads back to this page. */
export function useCheckout(place: () => Place) {
  return createMutation(() => ({
    mutationFn: async (planId: BoughtPlan) => {
      const here = location.origin + location.pathname;
      const { checkoutUrl } = await body(
        api.POST('/api/v1/billing/checkout', {
          params: { header: at(place()) },
          body: { type: 'subscription', planId, successUrl: `${here}?bought=${planId}`, cancelUrl: here },
        }),
      );
      location.assign(checkoutUrl);
    },
  }));
}

/** Opens the payment provider's page with the tenant's invoices and payment method. */
export function usePortal(place: () => Place) {
  return createMutation(() => ({
    mutationFn: async () => {
      const { portalUrl } = await body(
        api.POST('/api/v1/billing/portal', {
          params: { header: at(place()) },
          body: { returnUrl: location.origin + location.pathname },
        }),
      );
      location.assign(portalUrl);
    },
  }));
}
