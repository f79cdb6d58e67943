/** Questions about tenants that others added the person to. */
export const memberships = {
  addition: {
    text: (by: string, tenant: string) =>
      `${by} added you to ${tenant}. Until you answer, its admins see nothing of how you use the service.`,
    stay: 'Stay',
    leave: 'Leave',
  },
  invitation: {
    text: (by: string, tenant: string) => `${by} invites you to ${tenant}.`,
    stay: 'Accept',
    leave: 'Decline',
  },
};
