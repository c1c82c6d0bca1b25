"""Issues and renews certificates, and hands them to their users."""
