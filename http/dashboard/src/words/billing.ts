/** The names of the plans. */
export const plans = {
  free: 'Free',
  sandbox: 'Sandbox',
  standard: 'Standard',
  premium: 'Premium',
  enhanced: 'Enhanced',
  enterprise: 'Enterprise',
};

/** The billing page. */
export const billing = {
  title: 'Billing',
  text: 'The plan of this tenant, its features and its payment.',
  limits: 'Limits of the plan, and how much of them is used',
  plan: 'Plan',
  statuses: {
    none: 'No subscription',
    incomplete: 'Not paid yet',
    incomplete_expired: 'Never paid',
    trialing: 'On trial',
    active: 'Active',
    past_due: 'A payment is missing',
    unpaid: 'Unpaid',
    canceled: 'Cancelled',
    paused: 'Paused',
  },
  statusTexts: {
    past_due: 'The plan stays for seven days. Update the payment method before then.',
    unpaid: 'The tenant has the Free plan until it is paid.',
  } as Record<string, string>,
  until: (day: string) => `Paid until ${day}. It is renewed then.`,
  ends: (day: string) => `It ends on ${day}, and is not renewed.`,
  manage: 'Invoices and payment',
  features: 'Features',
  feature: { analytics: 'Analytics', experiments: 'Experiments', multivariate: 'Multivariate tests' },
  included: 'Included',
  from: (plan: string) => `With ${plan} or a larger plan`,
  change: 'Change the plan',
  changeText: 'A page of the payment provider opens, where you see the price before you pay.',
  choose: (plan: string) => `Choose ${plan}`,
  current: 'Your plan',
  adminsOnly: 'Admins of the tenant change the plan.',
  bought: (plan: string) =>
    `Thank you. The plan ${plan} is in force as soon as the payment is confirmed, mostly within a minute.`,
  notConfigured: 'This service takes no payments. Its operator can give the tenant another plan.',
};
